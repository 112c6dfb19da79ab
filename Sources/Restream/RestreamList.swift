import Base

/// A target to which a stream's programme is sent, as its host configured it.
///
/// Encodes its key in the clear, for the store. `Secret` itself is not encodable, so that a key cannot end up in an
/// answer or a log by accident.
package struct RestreamTarget: Equatable, Sendable, Codable {
    /// Identifies the target within its stream; never reused.
    package let number: Int
    /// Without the key.
    package let address: RestreamAddress
    /// The stream key, which the API never returns.
    package let key: Secret<String>

    private enum CodingKeys: CodingKey { case number, address, key }

    package init(number: Int, address: RestreamAddress, key: Secret<String>) {
        self.number = number
        self.address = address
        self.key = key
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        number = try container.decode(Int.self, forKey: .number)
        address = try container.decode(RestreamAddress.self, forKey: .address)
        key = Secret(try container.decode(String.self, forKey: .key))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(number, forKey: .number)
        try container.encode(address, forKey: .address)
        try container.encode(key.exposed, forKey: .key)
    }

    /// Compares keys in the clear: `Secret` has no equality of its own.
    package static func == (one: Self, other: Self) -> Bool {
        one.number == other.number && one.address == other.address && one.key.exposed == other.key.exposed
    }
}

/// The targets of one stream.
package struct RestreamList: Equatable, Sendable, Codable {
    /// Why a target is not added.
    package enum Refusal: Error, Equatable, Sendable {
        /// The stream already has `limit` targets.
        case full
        /// The stream already has a target with this address and key.
        case duplicate
    }

    /// Most targets of one stream.
    package static let limit = 8

    /// In the order in which they were added.
    package private(set) var targets: [RestreamTarget] = []
    /// The highest number given so far, stored so that numbers of removed targets are not reused.
    private var lastNumber = 0

    package init() {}

    /// Adds a target under the next number.
    /// - Throws: `duplicate` for an address and key that the list already contains, and `full` at `limit`.
    package mutating func add(
        _ address: RestreamAddress, key: Secret<String>
    ) throws(Refusal) -> RestreamTarget {
        guard !targets.contains(where: { $0.address == address && $0.key.exposed == key.exposed }) else {
            throw .duplicate
        }
        guard targets.count < Self.limit else { throw .full }
        lastNumber += 1
        let target = RestreamTarget(number: lastNumber, address: address, key: key)
        targets.append(target)
        return target
    }

    /// Removes a target.
    /// - Returns: false if there is no target of that number.
    package mutating func remove(_ number: Int) -> Bool {
        let count = targets.count
        targets.removeAll { $0.number == number }
        return targets.count < count
    }
}
