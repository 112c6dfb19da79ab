import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Lost sound` {
    /// 20 ms in one frame, 60 ms, and 10 ms: configurations 15 and 3, and 14 of RFC 6716 §3.1.
    private static let (long, longest, short): (UInt8, UInt8, UInt8) = (0x78, 0x18, 0x70)

    /// What is found in a packet that begins at 96,000 and has number 1,000.
    /// - Parameters:
    ///   - blocks: their offsets, and the table of contents of each; the oldest first.
    ///   - known: numbers of packets that came, how long before the packet they begin, and how long they last.
    /// - Returns: numbers by offset.
    private func found(
        _ blocks: [(offset: UInt32, toc: UInt8)], known: [(index: Int64, before: UInt32, length: UInt32)],
        missing: Set<Int64>? = nil, start: UInt32 = 96_000, second: UInt8 = 1,
        silent: [Int64] = []
    ) throws -> [UInt32: Int64] {
        var payload = [UInt8](repeating: 0, count: blocks.count * 4 + 1)
        var position = 0
        var span = payload.mutableSpan
        for block in blocks {
            try RedundantAudio.writeHeader(
                payloadType: 111, offset: block.offset, length: 2, into: &span, at: &position)
        }
        try RedundantAudio.writeLastHeader(payloadType: 111, into: &span, at: &position)
        payload += blocks.flatMap { [$0.toc, second] } + [Self.long, 2]
        let red = try RedundantPayload(parsing: payload.span)
        var recovery = SoundRecovery(in: .init(index: 1_000, start: start, length: 960))
        recovery.take(red, in: payload.span)
        for sound in known {
            recovery.noteKnown(.init(index: sound.index, start: start &- sound.before, length: sound.length))
        }
        for index in silent { recovery.noteSilent(index) }
        let came = Set(known.map(\.index)).union(silent)
        recovery.resolve { missing?.contains($0) ?? !came.contains($0) }
        var found: [UInt32: Int64] = [:]
        for place in 0..<recovery.count {
            guard let block = recovery.found(place) else { continue }
            found[start &- block.sound.start] = block.sound.index
        }
        return found
    }

    @Test(arguments: [96_000, 500, .max] as [UInt32]) func `is found right before the packet`(start: UInt32)
        throws
    {
        let blocks: [(UInt32, UInt8)] = [(1_920, Self.long), (960, Self.long)]
        #expect(try found(blocks, known: [(997, 2_880, 960)], start: start) == [960: 999, 1_920: 998])
        // That it is there already helps to find what is before it.
        #expect(try found(blocks, known: [(999, 960, 960)], start: start) == [1_920: 998])
    }

    /// GStreamer's `rtpredenc` repeats one packet, at whatever distance it is told to.
    @Test func `is found behind one that came, and before one`() throws {
        #expect(try found([(1_920, Self.long)], known: [(999, 960, 960)]) == [1_920: 998])
        #expect(try found([(1_920, Self.long)], known: [(997, 2_880, 960)]) == [1_920: 998])
        #expect(try found([(2_880, Self.long)], known: [(999, 960, 960)]) == [:])
    }

    @Test func `is found where the length of packets changes, if it leaves no gap`() throws {
        #expect(
            try found([(4_320, Self.longest), (1_440, Self.short), (960, Self.long)], known: []) == [
                960: 999, 1_440: 998, 4_320: 997,
            ])
        // A packet of 10 ms where one of 20 ms has room: is there another beside it?
        #expect(try found([(1_920, Self.short), (960, Self.long)], known: []) == [960: 999])
        #expect(try found([(960, Self.short)], known: [(998, 1_920, 960)]) == [960: 999])
    }

    @Test func `is not made up after silence`() throws {
        // One packet, or two of which one was never sent? The offset is the same.
        #expect(try found([(1_920, Self.long)], known: [(990, 40_000, 960)]) == [:])
        #expect(try found([(9_600, Self.long), (1_920, Self.long)], known: []) == [:])
        #expect(try found([(9_600, Self.long), (960, Self.long)], known: []) == [960: 999])
    }

    @Test func `is found among packets without sound, of which some are lost, too`() throws {
        let block: [(UInt32, UInt8)] = [(960, Self.long)]
        #expect(try found(block, known: [(997, 1_920, 960)], silent: [998]) == [960: 999])
        #expect(try found(block, known: [(997, 1_920, 960)], silent: [999]) == [960: 998])
        // Two of sound are missing, and there is room for two; the older one was not sent again.
        #expect(try found(block, known: [(995, 2_880, 960)], silent: [999, 997]) == [960: 998])
        // Some of those that are missing were without sound. Whichever they were, none was of other sound.
        #expect(try found(block, known: [(996, 1_920, 960)], silent: [999]) == [960: 998])
        #expect(try found(block, known: [(995, 1_920, 960)], silent: [997]) == [960: 999])
        #expect(try found(block, known: [], silent: [999]) == [960: 998])
        let earlier: [(UInt32, UInt8)] = [(1_920, Self.long)]
        #expect(try found(earlier, known: [(995, 2_880, 960)], silent: [996]) == [1_920: 997])
        // Here the number may be that of the sound between.
        #expect(try found(earlier, known: [], silent: [999]) == [:])
        #expect(try found(block, known: [(990, 9_600, 960)], silent: [1_000, 1_001, 967]) == [960: 999])
    }

    @Test func `is not made up where neighbours contradict each other`() throws {
        // Between 997 and the packet there is room for one block, and for two numbers.
        #expect(try found([(960, Self.long)], known: [(997, 1_920, 960)]) == [:])
        // It overlaps what came, or lies before what came earlier.
        #expect(try found([(960, Self.long)], known: [(998, 1_500, 960)]) == [:])
        #expect(try found([(960, Self.long)], known: [(998, 500, 960)]) == [:])
    }

    @Test func `a recovered packet is used once, and only if it is missing`() throws {
        #expect(try found([(960, Self.long)], known: [(999, 960, 960)]) == [:])
        #expect(try found([(960, Self.long)], known: [], missing: []) == [:])
    }

    @Test func `blocks that are out of order or repeated are not used`() throws {
        for offsets in [[960, 1_920], [960, 960], [1_920, 960, 960], [0], [960, 0]] as [[UInt32]] {
            #expect(try found(offsets.map { ($0, Self.long) }, known: []) == [:], "\(offsets)")
        }
    }

    @Test func `is not looked for in blocks that are no Opus`() throws {
        // Of no frames, of 63 of 20 ms, and of one.
        #expect(try found([(960, 0x7B)], known: [], second: 0) == [:])
        #expect(try found([(960, 0x7B)], known: [], second: 63) == [:])
        #expect(try found([(960, 0x7B)], known: [], second: 1) == [960: 999])
        #expect(SoundRecovery(in: .init(index: 1, start: 0, length: 0)).found(0) == nil)
    }

    @Test func `is looked for in the latest blocks alone`() throws {
        let blocks = (1...17).reversed().map { (UInt32($0) * 960, Self.long) }
        #expect(try found(blocks, known: []).values.sorted() == Array(992...999))
    }

    @Test(arguments: 0..<20) func `a recovered packet never has a number received already`(seed: UInt64)
        throws
    {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let offsets = Set((0..<8).map { _ in UInt32.random(in: 1...12, using: &random) * 480 })
            var blocks: [(offset: UInt32, toc: UInt8)] = []
            for offset in offsets.sorted(by: >) {
                blocks.append(
                    (
                        offset,
                        [Self.long, Self.longest, Self.short].randomElement(using: &random) ?? Self.long
                    ))
            }
            var known: [(index: Int64, before: UInt32, length: UInt32)] = []
            for index in Int64(990)..<1_000 where Bool.random(using: &random) {
                known.append((index, UInt32.random(in: 1...20, using: &random) * 480, 960))
            }
            let taken = Set(known.map(\.index))
            let silent = (990..<1_000).filter { index in
                seed % 2 == 1 && !taken.contains(index) && Bool.random(using: &random)
            }
            let numbers = try found(blocks, known: known, silent: silent)
            #expect(Set(numbers.values).count == numbers.count)
            #expect(taken.union(silent).isDisjoint(with: numbers.values))
            #expect(numbers.values.allSatisfy { (968..<1_000).contains($0) })
            // Later sound has higher numbers.
            let ordered = numbers.sorted { $0.key > $1.key }.map(\.value)
            #expect(ordered == ordered.sorted())
        }
    }
}
