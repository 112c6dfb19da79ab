import Base
import ClientPeer
import Crypto
import Dispatch
import Peer
import TestSupport
import Testing
import Wire

@testable import Net
@testable import sfu_bench

@Suite(.timeLimit(.minutes(10))) struct `A generator` {
    private let generator: Generator

    init() throws {
        var options = Options(.load)
        options.machine.threads = 1
        generator = try Generator(options)
    }

    /// Adds a viewer for a server that never answers.
    /// - Returns: its socket, for as long as the generator has it.
    private func addViewer(_ id: Int, for server: TransportAddress) throws -> WeakSocket {
        var random = SeededGenerator(seed: UInt64(id))
        let offer = ClientOffer(
            [.playAudio, .playVideo], credentials: ICECredentials(using: &random),
            fingerprint: generator.fingerprint, using: &random)
        let fingerprint = try DTLSIdentity().fingerprint
        let transport = LocalTransport(
            credentials: ICECredentials(using: &random),
            fingerprint: SDPFingerprint(
                algorithm: fingerprint.algorithm.rawValue, bytes: fingerprint.bytes),
            udp: [server])
        let offered = try SessionOffer(SessionDescription(parsing: offer.description.text), for: .play)
        let (_, answer) = try Negotiator().answer(to: offered, as: transport, using: &random)
        let socket = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        generator.add(
            ClientSetup(
                id: id, credentials: offer.credentials, plan: try ClientPlan(answer, to: offer),
                socket: .datagram(socket),
                purpose: .view(ViewerSettings(decryptEvery: 1, asksForRepair: false))))
        return WeakSocket(socket)
    }

    /// Waits until a datagram has come.
    private func arrival(at socket: DatagramSocket) async {
        let source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor)
        await withCheckedContinuation { arrived in
            source.setEventHandler { source.cancel() }
            source.setCancelHandler { arrived.resume() }
            source.resume()
        }
    }

    @Test func `says nothing more for a client that it removed`() async throws {
        defer { generator.stop() }
        let server = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let viewer = try addViewer(7, for: server.localAddress)
        // It asks again and again whether the server is there.
        await arrival(at: server)
        #expect(viewer.socket != nil)
        await generator.remove(id: 7)
        // Its socket is closed, with its last owner. (That its address is free proves nothing: others may have it.)
        #expect(viewer.socket == nil)
    }

    @Test func `does not wait for a client that it does not have, or for threads that have ended`() async {
        await generator.remove(id: 3)
        generator.stop()
        await generator.remove(id: 3)
    }
}

/// A socket that somebody else keeps open.
private final class WeakSocket {
    private(set) weak var socket: DatagramSocket?

    init(_ socket: DatagramSocket) {
        self.socket = socket
    }
}
