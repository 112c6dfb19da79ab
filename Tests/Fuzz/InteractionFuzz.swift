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
        Interaction.Person(id: host, name: nil, role: .host, isModerator: true, isShop: true),
    ]
    var machine = Interaction()
    // What a restart would read: the same changes, in order.
    var remembered = InteractionRecord()
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
            switch first / 2 % 12 {
            case 0: .comment(key: String(text.prefix(3)), text: text)
            case 1: .delete(number)
            case 2: .pin(number)
            case 3: .unpin
            case 4: .silence(id, seconds: number)
            case 5: .react(Dictionary([(text, number), ("heart", number)]) { first, _ in first })
            case 6: .react(["heart": number])
            case 7: .openPoll(draft(text))
            case 8:
                .vote(
                    machine.record.poll?.number ?? number, options: text.utf8.prefix(8).map { Int($0) - 0x30 }
                )
            case 9: .closePoll(number)
            case 10:
                .give(
                    Gift.Draft(
                        key: String(text.prefix(2)), giver: id, name: text, kind: String(text.prefix(1)),
                        count: number, price: number, currency: "X"))
            default: .edit(edit(text, number))
            }
        var changes = machine.closePoll(at: now.wall)
        changes += (try? machine.apply(command, from: people[first % 2], at: now))?.changes ?? []
        _ = machine.tellReactions(at: elapsed)
        changes += machine.saveReactions(at: elapsed)
        for change in changes { remembered.apply(change) }
        let record = machine.record
        guard record == remembered else { fatalError("remembered otherwise: \(remembered), not \(record)") }
        guard record.totals.keys.allSatisfy(record.settings.reactions.contains),
            record.settings.reactions.count <= InteractionSettings.reactionLimit,
            record.lastNumber == record.comments.last?.number ?? 0,
            record.pinned.map({ record.comment($0.number) != nil }) ?? true,
            record.poll.map(isSound) ?? true, isSound(record.gifts)
        else { fatalError("a record that cannot be: \(record)") }
    }
}

/// The text is the question, and its parts are the options.
private func draft(_ text: String) -> Poll.Draft {
    var draft = Poll.Draft(question: text, options: text.split(separator: ",").map(String.init))
    let length = text.utf8.count
    draft.isMultiple = length % 2 == 0
    draft.results = length % 3 == 0 ? .closed : .live
    draft.right = length % 7 == 0 ? [length % 11 - 1] : nil
    draft.seconds = length % 5 == 0 ? length : nil
    return draft
}

/// Two people may have answered.
private func isSound(_ poll: Poll) -> Bool {
    let chosen = poll.counts.reduce(0, +)
    return Poll.optionRange.contains(poll.options.count) && poll.counts.count == poll.options.count
        && poll.voters <= 2 && poll.counts.allSatisfy { (0...poll.voters).contains($0) }
        && (poll.isMultiple ? chosen >= poll.voters : chosen == poll.voters)
        && (poll.quiz.map { $0.rightVoters <= poll.voters && $0.winners.count == $0.rightVoters } ?? true)
}

/// One person gives, and nothing is forgotten yet.
private func isSound(_ gifts: GiftTotals) -> Bool {
    gifts.lastNumber == gifts.recent.count && Set(gifts.recent.map(\.key)).count == gifts.recent.count
        && gifts.value == gifts.recent.reduce(0) { $0 + $1.count * $1.price }
        && gifts.givers.all.top(9).allSatisfy { $0.value == gifts.value }
}

private func edit(_ text: String, _ number: Int) -> InteractionEdit {
    var edit = InteractionEdit()
    edit.words = text.split(separator: ",").map(String.init)
    edit.reactions = text.split(separator: "-").map(String.init)
    edit.slowModeSeconds = number
    if text.utf8.count % 3 == 0 { edit.commentTier = number % 2 == 0 ? .clear : .set(text) }
    let kind = GiftCatalogue.Kind(id: String(text.prefix(1)), name: text, picture: text, price: number)
    if text.utf8.count % 2 == 0 { edit.gifts = GiftCatalogue(currency: "X", kinds: [kind]) }
    return edit
}

private func check(_ written: String) {
    guard let once = try? CommentText(written) else { return }
    guard once.text.count <= CommentText.length, once.text.utf8.count <= CommentText.byteLength,
        !once.text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }),
        let again = try? CommentText(once.text), again == once
    else { fatalError("not clean: \(once.text.debugDescription)") }
}
