//! Talking to a machine so that the relay between cannot read it. Through a
//! relay this client does nothing else.

#[cfg(feature = "relay")]
pub use built_in::Secrecy;
#[cfg(not(feature = "relay"))]
pub use left_out::Secrecy;

#[cfg(feature = "relay")]
mod built_in {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use base::ids::MachineId;
    use protocol::public_key::PublicKey;
    use relay::noise::{Initiator, NoiseError, Purpose, Secured};

    /// An agreement with a machine.
    pub struct Secrecy(Box<Secured>);

    impl Secrecy {
        /// Agrees on keys with a machine. `ask` sends a request and returns the
        /// data of its response, or why there is none.
        ///
        /// # Errors
        /// Whoever answers is not the machine of this name.
        pub fn agree(
            machine: &str,
            ask: &mut dyn FnMut(Value) -> Result<Value, String>,
        ) -> Result<Secrecy, String> {
            let machine: MachineId = machine
                .parse()
                .map_err(|error: base::error::Error| error.to_string())?;
            let answer = ask(json!({"type": "machine_key"}))?;
            let key = answer["public_key"].as_str().unwrap_or_default();
            let key = PublicKey::parse("public_key", key).map_err(|error| error.to_string())?;
            if key.machine_id() != machine {
                return Err(
                    "the relay gives the key of another machine: it may be trying to read along. \
                     Nothing was sent"
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
            Ok(Secrecy(Box::new(secured)))
        }

        /// Encrypts a text into messages.
        pub fn seal(&mut self, text: &str) -> Result<Vec<Vec<u8>>, String> {
            let mut messages = Vec::new();
            self.0
                .seal(text, &mut |message| messages.push(message))
                .map_err(|error| error.to_string())?;
            Ok(messages)
        }

        /// Decrypts a message; returns the text that it completes, if it does.
        pub fn open(&mut self, message: &[u8]) -> Result<Option<String>, String> {
            self.0.open(message).map_err(|error| error.to_string())
        }
    }
}

#[cfg(not(feature = "relay"))]
mod left_out {
    use serde_json::Value;

    /// There is none.
    pub enum Secrecy {}

    impl Secrecy {
        pub fn agree(
            _: &str,
            _: &mut dyn FnMut(Value) -> Result<Value, String>,
        ) -> Result<Secrecy, String> {
            Err("this hearth was built without relays (the feature \"relay\")".to_owned())
        }

        pub fn seal(&mut self, _: &str) -> Result<Vec<Vec<u8>>, String> {
            match *self {}
        }

        pub fn open(&mut self, _: &[u8]) -> Result<Option<String>, String> {
            match *self {}
        }
    }
}
