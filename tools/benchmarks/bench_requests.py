"""Questions a second over HTTP beside the ideal rate, and memory as the number of questions grows.

The server waits 50 ms and answers, in a process of its own; 16 questions are under way at once, so
320 a second are the most there can be. The rate means something on an idle machine only; processor
time, and the rate beside that of bare sockets asked before and after, on any.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import time

from fairgate.domain.executions import Question
from fairgate.io.replies import ReplyPaths, json_path
from fairgate.systems.budget import Meter
from fairgate.systems.http import HttpApplication, HttpAsked

DELAY, CONCURRENCY, QUESTIONS = 0.05, 16, 3200
BODY = json.dumps({"answer": "positive"}).encode()
HEAD = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()


async def serve(port, delay):
    async def answer(reader, writer):
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                writer.close()
                return
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            await asyncio.sleep(delay)
            writer.write(HEAD + BODY)
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run(port, delay):
    asyncio.run(serve(port, delay))


def seconds_for(count, delay):
    """Return seconds, processor seconds of this process, and the most memory so far in MiB."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=run, args=(there, delay), daemon=True)
    process.start()
    asked = HttpAsked(url=f"http://127.0.0.1:{here.recv()}/ask", concurrency=CONCURRENCY)
    application = HttpApplication(asked, ReplyPaths(answer=json_path("$.answer")), Meter())
    questions = [Question(query=f"q{n}", text="", instruction="", prompt="") for n in range(count)]
    started, worked = time.perf_counter(), time.process_time()
    assert sum(1 for _ in application.ask(questions)) == count
    needed, worked = time.perf_counter() - started, time.process_time() - worked
    process.terminate()
    process.join()
    return needed, worked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bare_seconds(count, delay):
    """Return the seconds that sockets need which send the same bytes and read lengths only."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=run, args=(there, delay), daemon=True)
    process.start()
    port = here.recv()
    left = iter(range(count))

    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n in left:
            body = b'{"question": "q%d"}' % n
            writer.write(b"POST /ask HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await reader.readexactly(len(HEAD) + len(BODY))
        writer.close()

    async def all_of_them():
        await asyncio.gather(*(ask() for _ in range(CONCURRENCY)))

    started = time.perf_counter()
    asyncio.run(all_of_them())
    needed = time.perf_counter() - started
    process.terminate()
    process.join()
    return needed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", default=[2000, 8000])
    counts = parser.parse_args().counts
    ideal = CONCURRENCY / DELAY
    seconds_for(CONCURRENCY, DELAY)  # imports and the first connections
    half = QUESTIONS // 2
    bare = bare_seconds(half, DELAY)
    needed, worked, _ = seconds_for(QUESTIONS, DELAY)
    bare += bare_seconds(half, DELAY)
    rate = QUESTIONS / needed
    print(f"{rate:.0f} questions/s of {ideal:.0f} ideal: {rate / ideal:.1%}")
    print(f"bare sockets: {QUESTIONS / bare / ideal:.1%}, so {bare / needed:.1%} of theirs")
    print(f"{1000 * worked / QUESTIONS:.2f} ms of processor time a question")
    for count in counts:
        needed, _, memory = seconds_for(count, 0.0)
        print(
            f"{count:,} questions without delay: {count / needed:.0f}/s, {memory:.0f} MiB at most"
        )


if __name__ == "__main__":
    main()
