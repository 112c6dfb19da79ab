// Fuzz entry of SDP: whatever parses must be written and read again to the same value, and no accessor may
// trap.
// Seeds: Offers/*.sdp

import Wire

func fuzzSDP(_ bytes: Span<UInt8>) {
    if let description = try? SessionDescription(parsing: bytes) {
        guard let again = try? SessionDescription(parsing: description.text), again == description else {
            fatalError("a parsed description does not survive being written")
        }
        readEverything(description, description.media)
    }
    if let fragment = try? SDPFragment(parsing: bytes) {
        guard let again = try? SDPFragment(parsing: fragment.text), again == fragment else {
            fatalError("a parsed fragment does not survive being written")
        }
        readEverything(fragment, fragment.media)
        _ = (fragment.credentials?.isValid, fragment.allCandidates.map(\.text), fragment.isComplete)
    }
}

private func readEverything(_ section: some SDPSection, _ media: [MediaDescription]) {
    _ = (section.direction, section.iceOptions, section.iceCredentials?.isValid)
    roundTrip(try? section.groups())
    roundTrip(try? section.fingerprints())
    roundTrip(try? section.extensionMaps())
    for description in media {
        _ = (description.kind, description.mid, description.direction, try? description.payloadTypes())
        _ = (try? description.sctpPort(), try? description.maximumMessageSize())
        _ = (try? description.setup(), description.candidates.map(\.transportAddress))
        roundTrip(try? description.rtpMaps())
        roundTrip(try? description.formatParameters())
        roundTrip(try? description.feedback())
        roundTrip(try? description.extensionMaps())
        roundTrip(try? description.msids())
        roundTrip(try? description.sourceAttributes())
        roundTrip(try? description.sourceGroups())
        roundTrip(try? description.streamRestrictions())
        roundTrip(description.candidates)
        if let simulcast = try? description.simulcast() { roundTrip([simulcast]) }
    }
}

private func roundTrip(_ values: [some SDPValue]?) {
    for value in values ?? [] {
        guard let again = try? type(of: value).init(parsing: value.text), again == value else {
            fatalError("\(value) does not survive being written")
        }
    }
}
