/* What is filtered stands in the page's address, so that a link shows the same. */

const address = {
  read(id) {
    const [name, query] = location.hash.slice(1).split("?", 2);
    return name === id && query !== undefined ? new URLSearchParams(query) : null;
  },
  write(id, parameters) {
    const query = parameters.toString();
    try {
      history.replaceState(null, "", "#" + id + (query ? "?" + query : ""));
    } catch {
      /* Some viewers of artifacts forbid it; the page works without. */
    }
  },
};
