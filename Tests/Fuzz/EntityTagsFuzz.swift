// Fuzz entry of `If-Match` and `If-None-Match`: a list of tags is the same when it is written and read again, and has
// each of its tags.
// Seeds: Headers/*tags.txt

import Gateway

func fuzzEntityTags(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        switch EntityTags(text) {
        case .any:
            guard !text.utf8.contains(UInt8(ascii: "\"")) else {
                fatalError("any tag: \(text.debugDescription)")
            }
        case .list(let tags):
            let list = EntityTags.list(tags)
            for tag in tags {
                guard !tag.value.utf8.contains(UInt8(ascii: "\"")) else { fatalError("a quote in \(tag)") }
                guard list.have(tag), list.haveExactly(tag) != tag.isWeak else {
                    fatalError("\(tag) is not found")
                }
            }
            let written = tags.map(\.description).joined(separator: ", ")
            guard EntityTags(written) == list else { fatalError("\(written) is something else") }
        case nil: continue
        }
    }
}
