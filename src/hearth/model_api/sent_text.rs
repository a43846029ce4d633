//! What a stream has sent of a reply.

/// The text that a stream has sent. The model may write something before it calls
/// a tool; its reply is what it writes last.
#[derive(Default)]
pub struct SentText {
    /// Since the last call of a tool.
    round: String,
    /// Whether something was sent before that.
    has_earlier: bool,
}

impl SentText {
    /// Notes a piece; returns it as it is to be sent.
    pub fn add(&mut self, text: &str) -> String {
        let is_first = self.round.is_empty();
        self.round.push_str(text);
        match is_first && self.has_earlier {
            true => format!("\n\n{text}"),
            false => text.to_owned(),
        }
    }

    /// Notes that the model called tools: text that follows is a new beginning.
    pub fn end_round(&mut self) {
        if !std::mem::take(&mut self.round).is_empty() {
            self.has_earlier = true;
        }
    }

    /// What is still to be sent so that the whole ends in the reply.
    pub fn rest(&mut self, reply: &str) -> String {
        if !self.round.is_empty() && self.round.trim_end().ends_with(reply.trim()) {
            return String::new();
        }
        match reply.strip_prefix(&self.round) {
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
    fn a_stream_ends_in_the_reply() {
        let table = "
                                  | Hello.    | Hello.
            Hel,lo.               | Hello.    | Hello.
            Hel                   | Hello.    | Hello.
            Hello._               | Hello.    | Hello._
            Let me see.,CALL,It, is 9. | It is 9. | Let me see.\\n\\nIt is 9.
            Let me see.,CALL      | It is 9.  | Let me see.\\n\\nIt is 9.
            CALL,CALL,It is 9.    | It is 9.  | It is 9.
            It wa                 | Sorry: 9. | It wa\\n\\nSorry: 9.
        ";
        for [pieces, reply, expected] in rows(table) {
            let pieces = pieces.replace('_', " ");
            let expected = expected.replace('_', " ").replace("\\n", "\n");
            let mut sent = SentText::default();
            let mut text = String::new();
            for piece in pieces.split(',') {
                match piece {
                    "CALL" => sent.end_round(),
                    piece => text += &sent.add(piece),
                }
            }
            text += &sent.rest(reply);
            assert_eq!(text, expected);
        }
    }
}
