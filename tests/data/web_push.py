"""Reads what Hearth posts to a push service with libraries that nobody here wrote: http_ece
decrypts it, and py_vapid looks at who signed it.

web_push.py keys FOLDER          makes a browser's keys, and prints its subscription's
web_push.py read FOLDER HEADER   prints the text of FOLDER/message
"""

import json
import sys
from pathlib import Path

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02
from py_vapid.utils import b64urlencode

SECRET = b"sixteen bytes ok"
what, folder = sys.argv[1], Path(sys.argv[2])
if what == "keys":
    key = ec.generate_private_key(ec.SECP256R1())
    point = key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(pem)
    print(json.dumps({"p256dh": b64urlencode(point), "auth": b64urlencode(SECRET)}))
else:
    key = serialization.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    # It expects no space, which RFC 9110 allows.
    assert Vapid02.verify(sys.argv[3].replace(", k=", ",k=")), "the signature is wrong"
    text = http_ece.decrypt(
        (folder / "message").read_bytes(),
        private_key=key,
        auth_secret=SECRET,
        version="aes128gcm",
    )
    print(text.decode())
