import Base
import Interaction

extension Poll {
    /// The representation for followers and clients; hidden results, and the right options of a quiz, only when it is
    /// over.
    package var json: JSON { json(forHost: false) }

    /// - Parameter isForHost: whether to include, while the poll is open, what others see only when it is over.
    package func json(forHost isForHost: Bool) -> JSON {
        let isOver = !isOpen
        let showsVotes = isForHost || isOver || results == .live
        // Hidden even if the votes are live: the number of right voters would reveal the right option.
        let shownQuiz = isForHost || isOver ? quiz : nil
        let choices = zip(options, counts).enumerated().map { index, choice in
            var option = ["text": JSON.string(choice.0)]
            if showsVotes { option["votes"] = .integer(choice.1) }
            if let shownQuiz { option["right"] = .bool(shownQuiz.right.contains(index)) }
            return JSON.object(option)
        }
        var members: [String: JSON] = [
            "number": .integer(number), "question": .string(question), "options": .array(choices),
            "multiple": .bool(isMultiple), "results": .string(results.rawValue), "voters": .integer(voters),
            "quiz": .bool(quiz != nil), "openedAt": .time(openedAt), "closesAt": .time(closesAt),
            "closedAt": .time(closedAt),
        ]
        if let shownQuiz {
            members["rightVoters"] = .integer(shownQuiz.rightVoters)
            members["winners"] = .array(shownQuiz.winners.map(\.json))
        }
        return .object(members)
    }
}

extension Quiz.Winner {
    fileprivate var json: JSON {
        .object(["participant": .string(id.description), "name": .text(name), "at": .time(at)])
    }
}
