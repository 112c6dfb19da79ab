// Fuzz entry of what comes first on a shared TCP port: a verdict comes from a bounded beginning, and then stays.
// Seeds: TLS/*.hex

import Wire

func fuzzTLS(_ bytes: Span<UInt8>) {
    var verdict: Outcome?
    var needed = 0
    // Each byte by itself at first, as a slow client sends it; later, where heads are past, some at once.
    var count = 0
    while count < bytes.count {
        count = min(bytes.count, count + (count < 64 ? 1 : 37))
        let outcome = outcome(of: bytes.extracting(0..<count))
        if let verdict, verdict != outcome { fatalError("more bytes change what was said of fewer") }
        if case .opening? = outcome, verdict == nil, count < needed {
            fatalError("\(count) bytes sufficed, where \(needed) were said to be needed")
        }
        guard let outcome else {
            needed = StreamOpening.needed(after: bytes.extracting(0..<count))
            guard needed > count, needed <= StreamOpening.longest else {
                fatalError("\(needed) bytes are said to be needed after \(count)")
            }
            guard count < StreamOpening.longest else { fatalError("no verdict after all that is looked at") }
            continue
        }
        verdict = outcome
    }
    guard let hello = try? ClientHello(startOf: bytes) else { return }
    guard hello.protocols.allSatisfy({ (1...255).contains($0.count) }) else {
        fatalError("a name of a protocol that cannot be")
    }
    guard hello.protocols.joined().count < bytes.count else { fatalError("more names than bytes") }
}

private enum Outcome: Equatable {
    case opening(StreamOpening)
    case refused
}

/// Nil while more has to come.
private func outcome(of bytes: Span<UInt8>) -> Outcome? {
    do {
        return try StreamOpening(bytes).map { .opening($0) }
    } catch {
        return .refused
    }
}
