import Base
import Testing

@testable import Node

/// Memory shows a picture before the disk has it.
@Suite struct `A pause picture that the disk refuses` {
    private var choices = PauseChoices()
    private var shown: [UInt8]?
    private let show: StreamID

    init() throws { show = try #require(StreamID("show")) }

    private mutating func choose(_ file: [UInt8]?) -> UInt64 {
        let number = choices.begin(of: show, insteadOf: shown)
        shown = file
        return number
    }

    private mutating func answer(_ number: UInt64, _ file: [UInt8]?, _ isStored: Bool) {
        let correction = choices.end(number, file, of: show, isStored: isStored)
        if let correction { shown = correction.file }
    }

    @Test mutating func `gives way to the one before it`() {
        let first = choose([1])
        answer(first, [1], true)
        let second = choose([2])
        answer(second, [2], false)
        #expect(shown == [1])
        // Also where the host wanted none.
        let third = choose(nil)
        answer(third, nil, false)
        #expect(shown == [1] && choices.isEmpty)
    }

    @Test mutating func `leaves none behind that was refused before it`() {
        let (first, second) = (choose([1]), choose([2]))
        answer(first, [1], false)
        #expect(shown == [2], "the later one is still being written")
        answer(second, [2], false)
        #expect(shown == nil && choices.isEmpty)
    }

    @Test mutating func `takes nothing from the same picture that is stored`() {
        let (first, second) = (choose([1]), choose([1]))
        answer(first, [1], false)
        #expect(shown == [1])
        answer(second, [1], true)
        #expect(shown == [1] && choices.isEmpty)
    }

    @Test(arguments: [false, true])
    mutating func `gives way to what the disk has, in whatever order the answers come`(isLateFirst: Bool) {
        let (first, second) = (choose([1]), choose([2]))
        if isLateFirst { answer(second, [2], false) }
        answer(first, [1], true)
        if !isLateFirst { answer(second, [2], false) }
        #expect(shown == [1] && choices.isEmpty)
    }

    @Test mutating func `brings nothing back of a stream that has ended`() {
        let first = choose([1])
        answer(first, [1], true)
        let second = choose(nil)
        choices.forget(show)
        shown = nil
        answer(second, nil, false)
        #expect(shown == nil)
        // Nor of an earlier stream of the name.
        let third = choose([3])
        choices.forget(show)
        shown = nil
        let fourth = choose([4])
        answer(third, [3], true)
        #expect(shown == [4])
        answer(fourth, [4], false)
        #expect(shown == nil && choices.isEmpty)
    }
}
