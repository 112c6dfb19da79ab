import Base
import Interaction

/// The message by which a client gives a command of the audience; nil for commands that have no message.
///
/// Numbers are written with all of their digits, which a `JSON` does not keep.
func written(_ command: Interaction.Command) -> String? {
    switch command {
    case .comment(let key, let text):
        return #"{"type":"comment","id":\#(quoted(key)),"text":\#(quoted(text))}"#
    case .react(let taps):
        let members = taps.map { "\(quoted($0.key)):\($0.value)" }.joined(separator: ",")
        return #"{"type":"react","reactions":{\#(members)}}"#
    case .vote(let poll, let options):
        let list = options.map(String.init).joined(separator: ",")
        return #"{"type":"vote","poll":\#(poll),"options":[\#(list)]}"#
    default: return nil
    }
}

/// A text as JSON.
func quoted(_ text: some CustomStringConvertible) -> String { JSON.string(text.description).text }
