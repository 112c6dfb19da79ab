// Creates a token with Web Crypto, in Node 20, Deno, Bun or workers. Never use it in a web page: it needs the secret.
const bytes = (text) => new TextEncoder().encode(text);
const encode = (data) =>
  btoa(String.fromCharCode(...new Uint8Array(data))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

export async function makeToken({ keyID, secret }, { sub, role, stream, name, seconds = 3600, capabilities = [] }) {
  const header = { alg: "HS256", typ: "JWT" };
  const exp = Math.floor(Date.now() / 1000) + seconds;
  const claims = { iss: keyID, sub, role, stream, name, exp, capabilities };
  const signed = [header, claims].map((part) => encode(bytes(JSON.stringify(part)))).join(".");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(secret), algorithm, false, ["sign"]);
  return `${signed}.${encode(await crypto.subtle.sign("HMAC", key, bytes(signed)))}`;
}

if (globalThis.process) {
  const { ROSTRUM_KEY_ID: keyID, ROSTRUM_SECRET: secret } = process.env;
  console.log(await makeToken({ keyID, secret }, { sub: "ann", role: "host", stream: "talk", name: "Ann" }));
}
