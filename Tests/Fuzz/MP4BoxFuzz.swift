// Fuzz entry of MP4 boxes: they lie in the file, one behind the other, and a run visits the samples that it counts.
// Seeds: Recordings/*.hex

import Wire

func fuzzMP4Box(_ input: Span<UInt8>) {
    guard let file = try? input.bytes(0..<input.count) else { return }
    check(ByteSource(file), depth: 6)
    let body = MP4BoxBody(file)
    let defaults = MP4SampleDefaults(tfhd: body, of: MP4SampleDefaults(trex: body))
    let run = MP4TrackRun(body, defaults: defaults)
    var visited = 0
    run.forEach { _ in visited += 1 }
    guard visited == run.count, run.count <= 100_000 else {
        fatalError("\(visited) samples visited of \(run.count)")
    }
}

private func check(_ source: ByteSource, depth: Int) {
    var place: Int64 = 0
    for box in MP4Boxes(in: source, from: 0, to: source.size) {
        guard box.start == place, box.bodyStart > place, (box.bodyStart...source.size).contains(box.end)
        else {
            fatalError("\(box) is not within \(place) to \(source.size)")
        }
        let body = MP4BoxBody(of: box, source)
        guard body.bytes.count == Int(box.end - box.bodyStart) else {
            fatalError("\(body.bytes.count) bytes in \(box)")
        }
        // Beyond the end there is nothing, and nothing that traps.
        guard body.number(at: body.bytes.count, count: 4) == 0, body.number(at: .max, count: .max) == 0 else {
            fatalError("a number behind the end of \(box)")
        }
        _ = body.versionedNumber(at: 4)
        if depth > 0 { check(ByteSource(body.bytes), depth: depth - 1) }
        place = box.end
    }
}
