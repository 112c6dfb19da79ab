// Fuzz entry of the DTLS server: a stranger's datagrams, each after its length in two bytes, neither connect nor
// make it send more than datagrams of 1,200 bytes, and few of them.
// Seeds: DTLS/*.hex

import Base
import Crypto
import Wire

private let identity = try? DTLSIdentity()

func fuzzDTLS(_ input: Span<UInt8>) {
    guard let identity, let context = try? DTLSContext(identity: identity) else {
        fatalError("no DTLS context")
    }
    let endpoint = DTLSEndpoint(
        context: context, role: .server, expectedFingerprints: [identity.fingerprint])
    var now = MonotonicTime.zero
    var (offset, received, sent) = (0, 0, 0)
    while let length = try? input.uint16(at: offset), received < 100 {
        let end = min(offset + 2 + Int(length), input.count)
        let datagram = input.extracting((offset + 2)..<end)
        for effect in endpoint.receive(datagram, at: now) + endpoint.advance(to: now) {
            switch effect {
            case .send(let bytes):
                guard bytes.count <= DTLSContext.defaultMTU else { fatalError("a datagram is too long") }
                sent += 1
            case .connected, .applicationData: fatalError("a stranger is believed")
            case .closed: guard endpoint.isClosed else { fatalError("closed, and yet open") }
            }
        }
        offset = end
        received += 1
        now = now + .milliseconds(20)
    }
    // A flight of one datagram, its repetitions, and an alert.
    guard sent <= received + 2 else { fatalError("\(sent) datagrams for \(received)") }
    _ = endpoint.close()
    guard endpoint.deadline == nil else { fatalError("a closed endpoint waits for something") }
}
