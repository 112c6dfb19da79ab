// Fuzz entry of recordings as they lie on a disk: what is found lies within the file, and an MP4 file of which tables
// are made is one that needs no other.
// Seeds: Recordings/*.hex

import Recordings
import Wire

func fuzzRecordingFile(_ input: Span<UInt8>) {
    guard let file = try? input.bytes(0..<input.count) else { return }
    let size = Int64(file.count)
    let source = ByteSource(file)
    let fragments = MP4Fragments(source)
    for outline in [fragments.outline, WebMOutline.read(source)] {
        guard (0...size).contains(outline.end), outline.milliseconds >= 0 else {
            fatalError("\(outline) is not within \(size) bytes")
        }
        guard let patch = outline.patch else { continue }
        guard patch.offset >= 0, patch.offset + Int64(patch.bytes.count) <= outline.end else {
            fatalError("\(patch) is not within \(outline.end) bytes")
        }
    }
    guard (0...fragments.outline.end).contains(fragments.end) else {
        fatalError("fragments end at \(fragments.end) of \(size)")
    }
    guard !fragments.isWhole, let moov = fragments.moov, let tables = MP4Completion.tables(fragments) else {
        return
    }
    complete(Array(file.prefix(Int(fragments.end))), moov.box, with: tables)
}

/// As it is done on the disk.
private func complete(_ file: [UInt8], _ moov: MP4Box, with tables: [UInt8]) {
    var whole = file + tables
    let place = Int(moov.start) + 4
    guard place + 4 <= file.count else { fatalError("a box is not within its file") }
    whole.replaceSubrange(place..<(place + 4), with: Array("free".utf8))
    let again = MP4Fragments(ByteSource(whole))
    guard again.outline.end == Int64(whole.count) else { fatalError("tables are no whole box") }
    guard again.isWhole, again.end == Int64(whole.count) else {
        fatalError("a file with tables wants others")
    }
}
