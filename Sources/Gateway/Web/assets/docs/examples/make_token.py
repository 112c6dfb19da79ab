"""Creates a token with only the Python standard library."""
import base64, hashlib, hmac, json, os, time


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_token(sub, role, stream, name=None, seconds=3600, capabilities=()):
    header = {"alg": "HS256", "typ": "JWT"}
    claims = {
        "iss": os.environ["ROSTRUM_KEY_ID"], "sub": sub, "role": role, "stream": stream,
        "exp": int(time.time()) + seconds, "capabilities": list(capabilities),
    }
    if name:
        claims["name"] = name
    signed = encode(json.dumps(header).encode()) + "." + encode(json.dumps(claims).encode())
    key = os.environ["ROSTRUM_SECRET"].encode()
    return signed + "." + encode(hmac.new(key, signed.encode(), hashlib.sha256).digest())


print(make_token("ann", "host", "talk", name="Ann"))
