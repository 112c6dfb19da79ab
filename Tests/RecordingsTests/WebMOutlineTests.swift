import Testing
import Wire

@testable import Recordings

/// An element whose size takes eight octets.
/// - Parameter size: of its data as it is told; nil for what it is.
private func element(_ id: UInt32, _ data: [UInt8], size: UInt64? = nil) -> [UInt8] {
    let name = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: id >> UInt32($0)) }
    var bytes = Array(name.drop { $0 == 0 })
    bytes.append(bigEndian: (size ?? UInt64(data.count)) | 1 << 56)
    return bytes + data
}

/// A size that is not told.
private let unknown: UInt64 = 1 << 56 - 1

private func cluster(at time: [UInt8], _ blocks: [UInt8] = []) -> [UInt8] {
    element(MatroskaID.cluster, element(MatroskaID.timestamp, time) + blocks)
}

/// A frame of the first track.
private func block(at time: UInt8) -> [UInt8] {
    element(MatroskaID.simpleBlock, [0x81, 0, time, 0x80, 1, 2, 3])
}

/// The beginning of a file, with so many octets of room for its playing time.
private func head(room: Int = 11) -> [UInt8] {
    // Nine octets are the header of the room.
    let info =
        element(MatroskaID.timestampScale, [0x0F, 0x42, 0x40])
        + element(MatroskaID.void, [UInt8](repeating: 0, count: room - 9))
    return element(MatroskaID.ebml, [1, 2, 3]) + element(MatroskaID.segment, [], size: unknown)
        + element(MatroskaID.info, info)
}

private func outline(_ bytes: [UInt8]) -> RecordingOutline { WebMOutline.read(ByteSource(bytes)) }

@Suite struct `The outline of a WebM file` {
    @Test func `lasts until the last frame of the last cluster, in whatever order frames are`() throws {
        // The second cluster's frames are in a group, and the later one is first.
        let group = element(MatroskaID.blockGroup, element(MatroskaID.block, [0x81, 0, 99, 0, 1]))
        let clusters = [cluster(at: [0], block(at: 200)), cluster(at: [0x13, 0x88], group + block(at: 40))]
        let file = head() + clusters.flatMap { $0 }
        let found = outline(file)
        #expect(found.end == Int64(file.count))
        #expect(found.milliseconds == 5_000 + 99 + 33)
        let patch = try #require(found.patch)
        #expect(Array(patch.bytes.prefix(3)) == [0x44, 0x89, 0x88])
        let value = patch.bytes.dropFirst(3).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        #expect(Double(bitPattern: value) == 5_132)
    }

    @Test(
        arguments: [
            // Not to be measured, longer than the file, longer than any file, with an ID of five octets, cut off.
            element(MatroskaID.cluster, [1, 2, 3], size: unknown),
            element(MatroskaID.cluster, [1, 2, 3], size: 4),
            element(MatroskaID.cluster, [], size: unknown - 1),
            [0x08, 1, 2, 3, 4, 0x81, 0], Array(cluster(at: [9], block(at: 1)).dropLast()), [0x1F], [0],
        ] as [[UInt8]])
    func `ends before what is not whole`(rest: [UInt8]) {
        let whole = head() + cluster(at: [100], block(at: 5))
        let found = outline(whole + rest)
        #expect(found == outline(whole))
        #expect(found.end == Int64(whole.count) && found.milliseconds == 138)
    }

    @Test(arguments: [10, 12])
    func `has no place for its playing time where an element does not fit`(room: Int) {
        let found = outline(head(room: room) + cluster(at: [1]))
        #expect(found.patch == nil && found.milliseconds == 34)
    }

    /// Times may be of eight octets, and of more, of which only the last eight count.
    @Test(arguments: [
        [UInt8](repeating: 0xFF, count: 8), [UInt8](repeating: 0xFF, count: 40), [1, 0, 0, 0, 0, 0, 0],
    ])
    func `has a playing time with which can be calculated`(time: [UInt8]) {
        let found = outline(head() + cluster(at: time, block(at: 255)))
        #expect(found.milliseconds == 1 << 40 + 255 + 33)
    }

    @Test func `of something else is none`() {
        let segment = element(MatroskaID.segment, [], size: unknown)
        let none = RecordingOutline()
        #expect(outline([]) == none)
        #expect(outline(segment) == none)
        // Nobody can tell where the segment would begin.
        #expect(outline(element(MatroskaID.ebml, [], size: unknown) + segment) == none)
        #expect(outline(element(MatroskaID.ebml, [1]) + element(MatroskaID.cluster, [])) == none)
        let empty = head()
        #expect(outline(empty).milliseconds == 0 && outline(empty).end == Int64(empty.count))
    }
}
