/* What is filtered and compared stands in the page's address, so that a link shows the same. */

const address = {
  compared: "",
  parts() {
    const [name, query] = location.hash.slice(1).split("?", 2);
    return [name, query === undefined ? null : new URLSearchParams(query)];
  },
  read(id) {
    const [name, parameters] = address.parts();
    return name === id ? parameters : null;
  },
  write(id, parameters) {
    if (address.compared) parameters.set("beside", address.compared);
    const query = parameters.toString();
    try {
      history.replaceState(null, "", "#" + id + (query ? "?" + query : ""));
    } catch {
      /* Some viewers of artifacts forbid it; the page works without. */
    }
  },
  compare(id) {
    const [name, parameters] = address.parts();
    address.compared = id;
    parameters?.delete("beside");
    address.write(name || "summary", parameters ?? new URLSearchParams());
  },
};
