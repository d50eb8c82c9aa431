"""Retrievers as LangChain, LlamaIndex and Haystack make them, each over the same texts."""

from haystack import Document as HaystackDocument
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode

TEXTS = {f"d{n}": f"text number {n}" for n in range(6)}
ABOUT = {"label": "toxic"}

_vectors = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
_vectors.add_documents(
    [LangChainDocument(id=i, page_content=text, metadata=ABOUT) for i, text in TEXTS.items()]
)
langchain = _vectors.as_retriever(search_kwargs={"k": 3})

_nodes = [TextNode(id_=i, text=text, metadata=ABOUT) for i, text in TEXTS.items()]
llamaindex = VectorStoreIndex(_nodes, embed_model=MockEmbedding(8)).as_retriever(similarity_top_k=3)

_documents = InMemoryDocumentStore()
_documents.write_documents(
    [HaystackDocument(id=i, content=text, meta=ABOUT) for i, text in TEXTS.items()]
)
haystack = InMemoryBM25Retriever(_documents, top_k=3)
