//! A webhook account, a delivery and a scripted receiver for the tests of webhooks.

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, DeliveryId, TurnId};
use base::people::Audience;
use base::secret::Secret;
use config::WebhookAccount;
use net::http_client::test_server::{Act, TestServer};
use store::{Delivery, DeliveryState, Durable, Readers};

/// An account `door` that posts to `outgoing_url`.
pub fn account(secret: Option<Secret>, outgoing_url: &str) -> WebhookAccount {
    WebhookAccount {
        name: "door".to_owned(),
        incoming_path: "/hook".to_owned(),
        outgoing_url: outgoing_url.to_owned(),
        secret,
        model: None,
        permission_mode: None,
        tools: None,
        secret_previous: None,
        timeout_seconds: None,
        max_attempts: 10,
        enabled: true,
        tool_permissions: BTreeMap::new(),
        audience: Audience::Household,
        trusted: false,
        map: None,
        when: BTreeMap::new(),
    }
}

/// A delivery `dlv_0000000000001` of this body that was not attempted yet.
pub fn delivery(body: &str) -> Durable<Delivery> {
    Durable::for_test(Delivery {
        id: DeliveryId::from(1),
        turn_id: TurnId::from(1),
        conversation_id: ConversationId::from(1),
        readers: Readers::Household,
        account: "door".to_owned(),
        body: body.to_owned(),
        state: DeliveryState::Pending,
        attempts: 0,
        created_at: Timestamp::from_millis(0),
        next_at: Timestamp::from_millis(0),
        last_error: None,
    })
}

/// A receiver that answers each request with the next of these texts. An empty text
/// closes the connection without an answer.
pub fn receiver(answers: &[&str]) -> (TestServer, String) {
    let script = |text: &&str| match text.is_empty() {
        true => vec![Act::Close],
        false => vec![Act::Send(text.as_bytes().to_vec())],
    };
    let server = TestServer::new(answers.iter().map(script).collect());
    let url = format!("http://{}/callback?key=k", server.address);
    (server, url)
}
