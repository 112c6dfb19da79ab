// Fuzz entry of recordings that are played in fragments: ranges lie in the file, one behind the other, and what is read
// with its types restored says the same.
// Seeds: Recordings/*.hex

import Recordings
import Wire

func fuzzFragmentIndex(_ input: Span<UInt8>) {
    guard let file = try? input.bytes(0..<input.count), let index = FragmentIndex(ByteSource(file)) else {
        return
    }
    var end = index.initialization.upperBound
    guard index.initialization.lowerBound == 0, end > 0, index.size <= Int64(file.count) else {
        fatalError("\(index.initialization) and \(index.size) bytes of \(file.count)")
    }
    for segment in index.segments {
        guard segment.bytes.lowerBound >= end, !segment.bytes.isEmpty, segment.milliseconds >= 0 else {
            fatalError("\(segment) behind \(end)")
        }
        end = segment.bytes.upperBound
    }
    guard end == index.size else { fatalError("\(index.size) bytes end at \(end)") }
    var restored = Array(file.prefix(Int(index.size)))
    index.restore(&restored, from: 0)
    guard FragmentIndex(ByteSource(restored)) == index else { fatalError("restored, it is another one") }
    var pieces: [UInt8] = []
    while pieces.count < restored.count {
        var piece = Array(file[pieces.count..<min(pieces.count + 13, restored.count)])
        index.restore(&piece, from: Int64(pieces.count))
        pieces += piece
    }
    guard pieces == restored else { fatalError("it depends on how it is read") }
}
