"""A dense retriever: stored vectors, exact inner-product search with FAISS, scores in float64."""
