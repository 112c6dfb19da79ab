import Base
import Restream

/// A target as its stream's host sees it, without its key.
package struct RestreamStatus: Equatable, Sendable {
    /// Where a target's connection stands.
    package enum State: Equatable, Sendable {
        /// The stream is not live, or nothing is published yet.
        case waiting
        /// The connection is being made, or the target has not accepted the stream yet.
        case connecting
        /// The target takes the programme.
        case live
        /// The connection failed; `nextTry` is when the server tries again.
        case failed(RestreamFailure, nextTry: WallTime)

        /// The state's name in the API.
        package var name: String {
            switch self {
            case .waiting: "waiting"
            case .connecting: "connecting"
            case .live: "live"
            case .failed: "failed"
            }
        }
    }

    /// The target's number in its stream, by which the API names it.
    package let number: Int
    /// The URL of the target, without the key.
    package let address: RestreamAddress
    package var state: State
    /// When the target came into this state.
    package var since: WallTime
    /// Video frames left out in this connection because the target is too slow.
    package var dropped: UInt64 = 0

    package init(number: Int, address: RestreamAddress, state: State, since: WallTime) {
        self.number = number
        self.address = address
        self.state = state
        self.since = since
    }

    /// The status as the API shows it.
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
