import Base
import Interaction
import Stage
import Store

/// An external service that decides about each comment before it is shown.
package struct CommentReviewer: Sendable {
    /// Whether a comment of a stream may be shown.
    ///
    /// Must return soon, even if the service does not answer.
    let ask: @Sendable (OutboxEvent, StreamID) async -> Bool

    package init(_ ask: @escaping @Sendable (OutboxEvent, StreamID) async -> Bool) {
        self.ask = ask
    }
}

/// A comment that is being reviewed.
struct CommentReview {
    let sender: Stage.Sender
    /// Awaits the reviewer.
    let task: Task<Void, Never>
    /// The requests that wait for the result: a client may send the same comment several times.
    var answers: [StreamHost.Answer]
}

/// Comments that an external service reviews before they are written.
extension StreamHost {
    /// Requests that may wait for the same comment; further ones are refused for now.
    private static let answerLimit = 8

    /// Starts the review of a comment, which is written if it may be shown, after all comments that came before it.
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
        // The comment was written before, and is sent again.
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
                // The review was abandoned, and another one may have its number by now.
                guard !Task.isCancelled else { return }
                judge(number, isShown: isShown)
            }
            reviews[number] = CommentReview(sender: sender, task: task, answers: [answer])
        }
    }

    /// Applies the result of a review, and the results of later reviews that waited for it.
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

    /// Writes a comment if it is still allowed: its author may have been banned during the review.
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
        try enter(outcome.changes.map { .interaction($0) })
        return outcome.reply
    }

    /// Cancels all reviews, and answers that the comments were not written.
    func abandonReviews() {
        let abandoned = reviews.sorted { $0.key < $1.key }
        reviews = [:]
        for (_, review) in abandoned {
            review.task.cancel()
            for answer in review.answers { answer(.failure(.overloaded)) }
        }
    }
}
