import Base
import Restream

/// A target as its stream's host sees it; never with its key.
package struct RestreamStatus: Equatable, Sendable {
    package enum State: Equatable, Sendable {
        /// The stream is not live, or nobody publishes yet.
        case waiting
        case connecting
        case live
        /// - `nextTry`: when it is tried again.
        case failed(RestreamFailure, nextTry: WallTime)

        /// As the API says it.
        package var name: String {
            switch self {
            case .waiting: "waiting"
            case .connecting: "connecting"
            case .live: "live"
            case .failed: "failed"
            }
        }
    }

    package let number: Int
    package let address: RestreamAddress
    package var state: State
    /// Of the state.
    package var since: WallTime
    /// Pictures that were left out in this connection, because the target is too slow.
    package var dropped: UInt64 = 0

    package init(number: Int, address: RestreamAddress, state: State, since: WallTime) {
        self.number = number
        self.address = address
        self.state = state
        self.since = since
    }

    /// As the API shows it.
    package var json: JSON {
        var members: [String: JSON] = [
            "number": .integer(number), "url": .string(address.description), "state": .string(state.name),
            "since": .time(since), "droppedPictures": .integer(dropped), "reason": .null, "detail": .null,
            "nextTryAt": .null,
        ]
        if case .failed(let failure, let nextTry) = state {
            members["reason"] = .string(failure.name)
            members["detail"] = .string(failure.text)
            members["nextTryAt"] = .time(nextTry)
        }
        return .object(members)
    }
}
