import TestSupport
import Testing

@testable import Forwarding

@Suite struct `A list that knows places` {
    /// Counts how often it is looked at.
    private final class Member {
        let number: Int
        private(set) var looks = 0
        private var kept: Int?

        init(_ number: Int) {
            self.number = number
        }

        var place: Int? {
            get {
                looks += 1
                return kept
            }
            set {
                looks += 1
                kept = newValue
            }
        }
    }

    private func list(of members: some Sequence<Member>) -> PlacedList<Member> {
        var list = PlacedList(\Member.place)
        for member in members { list.append(member) }
        return list
    }

    /// As when all viewers of a track change to another one.
    @Test(arguments: [false, true]) func `removing a member does not search the list`(isInOrder: Bool) {
        var random = SeededGenerator(seed: 1)
        let members = (0..<2_000).map(Member.init)
        var list = list(of: members)
        for member in isInOrder ? members : members.shuffled(using: &random) { list.remove(member) }
        #expect(list.isEmpty)
        let looks = members.reduce(0) { $0 + $1.looks }
        #expect(looks <= 2_000 * 12, "\(looks) looks")
    }

    @Test func `the last member takes the place of one that is removed`() {
        let members = (0..<5).map(Member.init)
        var list = list(of: members)
        list.remove(members[1])
        #expect(list.elements.map(\.number) == [0, 4, 2, 3])
        list.remove(members[3])
        #expect(list.elements.map(\.number) == [0, 4, 2])
        list.append(members[1])
        #expect(list.takeAll().map(\.number) == [0, 4, 2, 1])
        #expect(list.isEmpty)
        #expect(members.allSatisfy { $0.place == nil })
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `the list holds each member that was added and not removed, once`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let members = (0..<20).map(Member.init)
        var list = PlacedList(\Member.place)
        var expected: Set<Int> = []
        for _ in 0..<500 {
            let number = Int.random(in: 0..<20, using: &random)
            let isThere = expected.contains(number)
            #expect(list.contains(members[number]) == isThere)
            if isThere || Bool.random(using: &random) {
                list.remove(members[number])
                expected.remove(number)
            } else {
                list.append(members[number])
                expected.insert(number)
            }
            #expect(list.count == expected.count)
            #expect(Set(list.elements.map(\.number)) == expected)
        }
    }

    @Test func `a member of another list is not removed`() {
        let members = (0..<4).map(Member.init)
        var (here, there) = (list(of: members.prefix(2)), list(of: members.suffix(2)))
        here.remove(members[3])
        #expect(!here.contains(members[3]) && there.contains(members[3]))
        there.remove(members[0])
        #expect(here.elements.map(\.number) == [0, 1])
        #expect(there.elements.map(\.number) == [2, 3])
    }
}
