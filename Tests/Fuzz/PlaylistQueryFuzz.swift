// Fuzz entry of what players of HLS ask for: a query is the same when it is written and read again, with numbers that
// nothing overflows with; and each file has one name.
// Seeds: Queries/*playlists.txt

import HLS

func fuzzPlaylistQuery(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        if let file = MediaFileName(text, tag: tag), !file.text(tag).utf8.elementsEqual(text.utf8) {
            fatalError("two names of one file: \(text.debugDescription)")
        }
        // `-` is a parameter that is absent.
        let values = text.split(separator: "&", omittingEmptySubsequences: false).map {
            $0 == "-" ? nil : String($0)
        }
        guard values.count == 4,
            let query = try? PlaylistQuery(
                sequenceNumber: values[0], part: values[1], skip: values[2], rendition: values[3])
        else { continue }
        let position = query.position
        for number in [position?.sequenceNumber, position?.part].compactMap({ $0 })
        where !(0..<1_000_000_000_000).contains(number) {
            fatalError("\(number) has more than twelve digits, or a sign")
        }
        let again = try? PlaylistQuery(
            sequenceNumber: position.map { "\($0.sequenceNumber)" }, part: position?.part.map { "\($0)" },
            skip: query.skips ? "YES" : nil, rendition: query.rendition.rawValue)
        guard again == query else { fatalError("\(query) is something else when it is written") }
    }
}

private let tag = "a1b2"
