import Base

/// Where a stream's programme goes on to, as its host wants it.
package struct RestreamTarget: Equatable, Sendable, Codable {
    /// Of the stream's targets, never used twice.
    package let number: Int
    package let address: RestreamAddress
    /// Never shown to anybody again.
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

    package static func == (one: Self, other: Self) -> Bool {
        one.number == other.number && one.address == other.address && one.key.exposed == other.key.exposed
    }
}

/// The targets of one stream.
package struct RestreamList: Equatable, Sendable, Codable {
    /// Why one is not added.
    package enum Refusal: Error, Equatable, Sendable {
        /// There are as many as a stream may have.
        case full
        /// There is the same address with the same key.
        case duplicate
    }

    /// Of one stream.
    package static let limit = 8

    /// In the order in which they were added.
    package private(set) var targets: [RestreamTarget] = []
    private var lastNumber = 0

    package init() {}

    /// Adds a target under the next number.
    /// - Throws: for one that is there already, and where there are too many.
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

    /// - Returns: false if there is none of that number.
    package mutating func remove(_ number: Int) -> Bool {
        let count = targets.count
        targets.removeAll { $0.number == number }
        return targets.count < count
    }
}
