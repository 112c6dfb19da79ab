// Fuzz entry of TURN: however a client's stream is cut, the same comes of it, and nothing is ever relayed to others
// than this server's own. Everybody's signature is good here, so that seeds get past the door.
// Seeds: TURN/*.hex

import Base
import TURN
import Wire

func fuzzTURN(_ input: Span<UInt8>) {
    guard let bytes = try? input.bytes(0..<input.count) else { return }
    let whole = outcome(of: bytes, cut: [])
    let cut = outcome(of: bytes, cut: bytes.map { Int($0 % 13) + 1 })
    guard whole == cut else { fatalError("a stream cut differently gives something else") }
    // As a datagram, padding or not.
    var agent = makeAgent()
    _ = agent.receive(input, at: now, second: 0, by: Agreeable())
}

private let now = MonotonicTime(nanoseconds: 1)
private let peer = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 7_000)
private let relayed = TransportAddress(ip: .loopback, port: 40_000)

/// Takes every signature, of zeros.
private struct Agreeable: TURNAuthenticator {
    func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] { [UInt8](repeating: 0, count: 20) }
    func md5(_ message: Span<UInt8>) -> [UInt8]? { [UInt8](repeating: 0, count: 16) }
}

private func makeAgent() -> TURNAgent {
    let policy = TURNPolicy(
        realm: "rostrum", credentials: TURNCredentials(secret: Secret([1])), nonceKey: Secret([2]),
        peers: [peer])
    return TURNAgent(of: TransportAddress(ip: .loopback, port: 1, transport: .tcp), by: policy)
}

private struct Outcome: Equatable {
    var answers: [[UInt8]] = []
    var relayed: [[UInt8]] = []
    var delivered: [UInt8] = []
    var isRefused = false
}

private func outcome(of stream: [UInt8], cut sizes: [Int]) -> Outcome {
    var outcome = Outcome()
    var agent = makeAgent()
    var reader = TURNFrameReader()
    var rest = stream[...]
    var sizes = sizes[...]
    while !rest.isEmpty {
        let piece = Array(rest.prefix(sizes.popFirst() ?? rest.count))
        rest = rest.dropFirst(piece.count)
        do {
            try reader.read(piece.span) { message in
                perform(agent.receive(message, at: now, second: 0, by: Agreeable()), &agent, &outcome)
            }
        } catch {
            outcome.isRefused = true
            return outcome
        }
    }
    agent.append([1, 2, 3].span, from: peer, isStream: true, at: now, to: &outcome.delivered)
    guard outcome.delivered.count % 4 == 0 else { fatalError("a stream's message without its padding") }
    return outcome
}

private func perform(_ effects: [TURNAgent.Effect], _ agent: inout TURNAgent, _ outcome: inout Outcome) {
    for effect in effects {
        switch effect {
        case .answer(let bytes):
            guard (try? STUNMessage(parsing: bytes.span)) != nil else { fatalError("an answer that is none") }
            outcome.answers.append(bytes)
        case .allocate: perform(agent.open(relayed, at: now, by: Agreeable()), &agent, &outcome)
        case .relay(let datagram, let destination):
            guard destination == peer, agent.hasAllocation else { fatalError("relayed to a stranger") }
            outcome.relayed.append(datagram)
        case .release: break
        }
    }
}
