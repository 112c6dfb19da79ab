// Fuzz entry of what audiences write: a text that is taken is clean, within its bounds, and the same when it is
// cleaned again; and no order of commands makes the machine break a promise.
// Seeds: Interaction/*.txt

import Base
import Interaction

func fuzzInteraction(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in 0..<input.count { bytes.append(input[index]) }
    guard let id = ParticipantID("bob"), let host = ParticipantID("ann") else { return }
    let people = [
        Interaction.Person(id: id, name: "Bob", role: .viewer, isModerator: false),
        Interaction.Person(id: host, name: nil, role: .host, isModerator: true),
    ]
    var machine = Interaction()
    var elapsed = MonotonicTime.zero
    // Each line is a command: its first byte says which, and by whom.
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: true).prefix(200) {
        let text = String(decoding: line.dropFirst(), as: UTF8.self)
        check(text)
        let first = Int(line.first ?? 0)
        let number = Int(text) ?? first
        elapsed = elapsed + .milliseconds(first * 10)
        let now = Moment(elapsed: elapsed, wall: WallTime(milliseconds: elapsed.nanoseconds / 1_000_000))
        let command: Interaction.Command =
            switch first / 2 % 8 {
            case 0: .comment(key: String(text.prefix(3)), text: text)
            case 1: .delete(number)
            case 2: .pin(number)
            case 3: .unpin
            case 4: .silence(id, seconds: number)
            case 5: .react(Dictionary([(text, number), ("heart", number)]) { first, _ in first })
            case 6: .react(["heart": number])
            default: .edit(edit(text, number))
            }
        _ = try? machine.apply(command, from: people[first % 2], at: now)
        _ = machine.tellReactions(at: elapsed)
        _ = machine.saveReactions(at: elapsed)
        let record = machine.record
        guard record.totals.keys.allSatisfy(record.settings.reactions.contains),
            record.settings.reactions.count <= InteractionSettings.reactionLimit,
            record.lastNumber == record.comments.last?.number ?? 0,
            record.pinned.map({ record.comment($0.number) != nil }) ?? true
        else { fatalError("a record that cannot be: \(record)") }
    }
}

private func edit(_ text: String, _ number: Int) -> InteractionEdit {
    var edit = InteractionEdit()
    edit.words = text.split(separator: ",").map(String.init)
    edit.reactions = text.split(separator: "-").map(String.init)
    edit.slowModeSeconds = number
    return edit
}

private func check(_ written: String) {
    guard let once = try? CommentText(written) else { return }
    guard once.text.count <= CommentText.length, once.text.utf8.count <= CommentText.byteLength,
        !once.text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }),
        let again = try? CommentText(once.text), again == once
    else { fatalError("not clean: \(once.text.debugDescription)") }
}
