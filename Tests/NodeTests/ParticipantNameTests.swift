import Base
import Testing

@testable import Node

@Suite struct `A person who has given no name` {
    @Test(arguments: [
        ("guest-abbj1u2LqYw0", "Guest"), ("guest-", "Guest"), ("guests", "guests"), ("Guest-1", "Guest-1"),
        ("ann", "ann"),
    ])
    func `is a guest if the identity was generated, and otherwise called by it`(id: String, name: String) {
        #expect(ParticipantID(id)?.shownName == name)
    }
}
