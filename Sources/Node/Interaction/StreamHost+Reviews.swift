import Base
import Interaction
import Stage
import Store

/// Somebody outside, who is asked about each comment before anybody is shown it.
package struct CommentReviewer: Sendable {
    /// Whether a comment of a stream may be shown; answers soon, whatever happens.
    let ask: @Sendable (OutboxEvent, StreamID) async -> Bool

    package init(_ ask: @escaping @Sendable (OutboxEvent, StreamID) async -> Bool) {
        self.ask = ask
    }
}

/// A comment about which somebody is asked.
struct CommentReview {
    let sender: Stage.Sender
    /// Asks.
    let task: Task<Void, Never>
    /// Those who wait for what comes of it: the same comment may come several times.
    var answers: [StreamHost.Answer]
}

/// Comments that are looked at by somebody outside before they are written.
extension StreamHost {
    /// Those who may wait for the same comment; more are told to come back.
    private static let answerLimit = 8

    /// Asks about a comment, and writes it if it may be shown, after all that came before it.
    func review(
        _ key: String, _ text: String, from sender: Stage.Sender, by reviewer: CommentReviewer,
        then answer: @escaping Answer
    ) throws(StageRefusal) {
        let stage = try openStage(to: sender)
        try requireOpen(stage)
        let now = environment.now()
        let submission: Interaction.Submission
        do throws(Interaction.Refusal) {
            submission = try interaction.submit(key, text, from: Self.person(sender, on: stage), at: now)
        } catch {
            throw .interaction(error)
        }
        switch submission {
        case .known(let comment): reply(.comment(comment), to: answer)
        case .waiting(let number):
            guard let waiting = reviews[number]?.answers.count, waiting < Self.answerLimit else {
                throw .interaction(.tooFast(wait: 1))
            }
            reviews[number]?.answers.append(answer)
        case .new(let number, let draft):
            let event = StageReport.review(draft, of: stage.record, at: now.wall)
            let task = Task { [id] in
                let isShown = await reviewer.ask(event, id)
                // Given up meanwhile, and another one may have its number.
                guard !Task.isCancelled else { return }
                judge(number, isShown: isShown)
            }
            reviews[number] = CommentReview(sender: sender, task: task, answers: [answer])
        }
    }

    private func judge(_ number: Int, isShown: Bool) {
        for judged in interaction.judge(number, isShown: isShown) {
            guard let review = reviews.removeValue(forKey: judged.number) else { continue }
            let answer: Answer = { result in for answer in review.answers { answer(result) } }
            do throws(StageRefusal) {
                guard judged.isShown else { throw .interaction(.reviewDenied) }
                reply(try write(judged.draft, of: review.sender), to: answer)
            } catch {
                answer(.failure(error))
            }
        }
    }

    /// As things are now: somebody may have been banned while it waited.
    private func write(
        _ draft: CommentDraft, of sender: Stage.Sender
    ) throws(StageRefusal) -> Interaction.Reply {
        try requireOpen(try openStage(to: sender))
        let outcome: Interaction.Outcome
        do throws(Interaction.Refusal) {
            outcome = try interaction.write(draft, at: environment.now())
        } catch {
            throw .interaction(error)
        }
        enter(outcome.changes.map { .interaction($0) })
        return outcome.reply
    }

    /// Nothing comes of what is looked at now.
    func abandonReviews() {
        let abandoned = reviews.sorted { $0.key < $1.key }
        reviews = [:]
        for (_, review) in abandoned {
            review.task.cancel()
            for answer in review.answers { answer(.failure(.overloaded)) }
        }
    }
}
