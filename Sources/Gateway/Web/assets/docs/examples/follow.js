// Follows a stream from a web page and reconnects after interruptions.
export function follow(server, stream, token, changed) {
  let known = {};
  let version;
  let socket;
  let timer;

  function merge(target, patch) {   // RFC 7396
    if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
    const result = { ...target };
    for (const [name, value] of Object.entries(patch)) {
      if (value === null) delete result[name];
      else result[name] = merge(result[name], value);
    }
    return result;
  }

  function connect() {
    const address = new URL(`/v1/streams/${stream}/sync`, server);
    address.protocol = address.protocol.replace("http", "ws");
    if (version) address.searchParams.set("since", version);
    if (token) address.searchParams.set("authenticate", "message");
    socket = new WebSocket(address);
    socket.onopen = () => token && socket.send(JSON.stringify({ type: "token", token }));
    socket.onmessage = ({ data }) => {
      const { type, version: number, ...news } = JSON.parse(data);
      if (type === "snapshot") known = news;
      else if (type === "change") known = merge(known, news);
      else return;
      version = number;
      changed(known);
    };
    // 4401: a new token is needed; 4403: removed from the stream.
    socket.onclose = ({ code }) => {
      if (code !== 4401 && code !== 4403) timer = setTimeout(connect, 1000);
    };
  }

  connect();
  const beat = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send('{"type":"heartbeat"}'), 5000);
  return () => {
    clearInterval(beat);
    clearTimeout(timer);
    socket.onclose = null;
    socket.close();
  };
}
