//! What a stream has sent of a reply.

/// The text that a stream has sent. The model may write something before it calls
/// a tool; its reply is all that it writes.
#[derive(Default)]
pub struct SentText {
    /// What the model wrote before its last call.
    earlier: String,
    /// Since the last call of a tool.
    round: String,
    /// Whether something was sent before that.
    has_earlier: bool,
}

impl SentText {
    /// What follows a text that the client has shown to have.
    pub fn after(earlier: String) -> SentText {
        SentText {
            earlier,
            ..SentText::default()
        }
    }

    /// Notes a piece; returns it as it is to be sent.
    pub fn add(&mut self, text: &str) -> String {
        let is_first = self.round.is_empty();
        let begins = is_first && !self.has_earlier && !self.earlier.is_empty();
        let text = if begins { text.trim_start() } else { text };
        self.round.push_str(text);
        match is_first && self.has_earlier && !text.starts_with('\n') {
            true => format!("\n\n{text}"),
            false => text.to_owned(),
        }
    }

    /// Notes that the model called tools: text that follows is a new beginning.
    pub fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.has_earlier |= !round.is_empty();
        if !self.earlier.is_empty() && !round.trim().is_empty() {
            self.earlier.push_str("\n\n");
        }
        self.earlier.push_str(round.trim());
    }

    /// Notes a text that is no part of the reply; returns it as it is to be sent.
    pub fn notice(&mut self, text: &str) -> String {
        self.end_round();
        match std::mem::replace(&mut self.has_earlier, true) {
            true => format!("\n\n{text}"),
            false => text.to_owned(),
        }
    }

    /// What is still to be sent so that the whole ends in the reply.
    pub fn rest(&mut self, reply: &str) -> String {
        let reply = match reply.strip_prefix(&self.earlier) {
            Some(rest) => rest.trim_start(),
            None => reply,
        };
        if reply.is_empty() {
            return String::new();
        }
        if !self.round.is_empty() && self.round.trim_end().ends_with(reply.trim()) {
            return String::new();
        }
        match reply.strip_prefix(self.round.trim_start()) {
            Some(rest) => self.add(rest),
            // Another model took over after the first had begun.
            None => {
                self.end_round();
                self.add(reply)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        for (pieces, reply, expected) in [
            (
                &["\n\n", "It is 9."][..],
                "Let me see.\n\nIt is 9.",
                "It is 9.",
            ),
            (&[], "Let me see.\n\nIt is 9.", "It is 9."),
            (&[], "Let me see.", ""),
            (&[], "Something else.", "Something else."),
        ] {
            let mut sent = SentText::after("Let me see.".to_owned());
            let mut text: String = pieces.iter().map(|piece| sent.add(piece)).collect();
            text += &sent.rest(reply);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_stream_ends_in_the_reply() {
        let table = "
                                  | Hello.    | Hello.
            Hel,lo.               | Hello.    | Hello.
            Hel                   | Hello.    | Hello.
            Hello._               | Hello.    | Hello._
            Let me see.,CALL,It, is 9. | It is 9. | Let me see.\\n\\nIt is 9.
            Let me see.,CALL      | It is 9.  | Let me see.\\n\\nIt is 9.
            CALL,CALL,It is 9.    | It is 9.  | It is 9.
            One. ,CALL,Two,CALL,It | One.\\n\\nTwo\\n\\nIt is 9. | One. \\n\\nTwo\\n\\nIt is 9.
            One.,CALL             | One.      | One.
            It wa                 | Sorry: 9. | It wa\\n\\nSorry: 9.
        ";
        for [pieces, reply, expected] in rows(table) {
            let pieces = pieces.replace('_', " ");
            let [reply, expected] =
                [reply, expected].map(|text| text.replace('_', " ").replace("\\n", "\n"));
            let mut sent = SentText::default();
            let mut text = String::new();
            for piece in pieces.split(',') {
                match piece {
                    "CALL" => sent.end_round(),
                    piece => text += &sent.add(piece),
                }
            }
            text += &sent.rest(&reply);
            assert_eq!(text, expected);
        }
    }
}
