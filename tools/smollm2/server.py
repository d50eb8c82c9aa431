"""llama.cpp's server with the SmolLM2 that `make demo-slm` fetches, for conversations.yaml.

Needs xllamacpp. Serves until it is ended.
"""

import threading
from pathlib import Path

import xllamacpp

ROOT = Path(__file__).parents[2]


def serve(port):
    """Return the server, which answers on this port of the machine alone."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(ROOT / ".fairgate/demo-slm/SmolLM2-135M-Instruct.Q4_1.gguf")
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx = 4096
    parameters.n_parallel = 2
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.cache_prompt = False
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    server = serve(8908)
    threading.Event().wait()
