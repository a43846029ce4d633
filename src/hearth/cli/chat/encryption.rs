//! End-to-end encryption through a relay, which this client always uses there.

#[cfg(feature = "relay")]
pub use built_in::EncryptedSession;
#[cfg(not(feature = "relay"))]
pub use left_out::EncryptedSession;

#[cfg(feature = "relay")]
mod built_in {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use base::ids::MachineId;
    use protocol::public_key::PublicKey;
    use relay::noise::{Initiator, NoiseError, Purpose, Secured};

    /// An encrypted session with a machine.
    pub struct EncryptedSession(Box<Secured>);

    impl EncryptedSession {
        /// Agrees on keys with a machine. `ask` sends a request and returns the
        /// data of its response, or why there is none.
        ///
        /// # Errors
        ///
        /// The peer is not this machine.
        pub fn agree(
            machine: &str,
            ask: &mut dyn FnMut(Value) -> Result<Value, String>,
        ) -> Result<EncryptedSession, String> {
            let machine: MachineId = machine
                .parse()
                .map_err(|error: base::error::Error| error.to_string())?;
            let answer = ask(json!({"type": "machine_key"}))?;
            let key = answer["public_key"].as_str().unwrap_or_default();
            let key = PublicKey::parse("public_key", key).map_err(|error| error.to_string())?;
            if key.machine_id() != machine {
                return Err(
                    "the relay returned the key of another machine and may be trying to read the \
                     messages; nothing was sent"
                        .to_owned(),
                );
            }
            let failed = |error: NoiseError| error.to_string();
            let (initiator, first) = Initiator::begin(Purpose::Client, &key).map_err(failed)?;
            let answer = ask(json!({"type": "secure", "noise": STANDARD.encode(first)}))?;
            let noise = answer["noise"].as_str().unwrap_or_default();
            let noise = STANDARD
                .decode(noise)
                .map_err(|_| "the machine's handshake is not base64".to_owned())?;
            let secured = initiator.finish(&noise).map_err(failed)?;
            Ok(EncryptedSession(Box::new(secured)))
        }

        /// Encrypts a text into messages.
        pub fn seal(&mut self, text: &str) -> Result<Vec<Vec<u8>>, String> {
            let mut messages = Vec::new();
            self.0
                .seal(text, &mut |message| messages.push(message))
                .map_err(|error| error.to_string())?;
            Ok(messages)
        }

        /// Decrypts a message; returns the text that it completes, if any.
        pub fn open(&mut self, message: &[u8]) -> Result<Option<String>, String> {
            self.0.open(message).map_err(|error| error.to_string())
        }
    }
}

#[cfg(not(feature = "relay"))]
mod left_out {
    use serde_json::Value;

    /// There is none.
    pub enum EncryptedSession {}

    impl EncryptedSession {
        pub fn agree(
            _: &str,
            _: &mut dyn FnMut(Value) -> Result<Value, String>,
        ) -> Result<EncryptedSession, String> {
            Err("this program was built without the feature \"relay\"".to_owned())
        }

        pub fn seal(&mut self, _: &str) -> Result<Vec<Vec<u8>>, String> {
            match *self {}
        }

        pub fn open(&mut self, _: &[u8]) -> Result<Option<String>, String> {
            match *self {}
        }
    }
}
