import Base
import Stage
import TestSupport
import Testing

@testable import Ingest
@testable import Net
@testable import Node

@Suite struct `The register of publishers by other protocols` {
    private var register = IngestRegister()
    private var random = SeededGenerator(seed: 1)
    private let rig: HostRig
    private let first = IngestConnection(port: .rtmps, number: ConnectionNumber(value: 1))
    private let second = IngestConnection(port: .srt, number: ConnectionNumber(value: 2))
    private let formats = IngestFormats(video: nil, resolution: nil, audio: nil, conversion: nil)

    init() throws {
        rig = try HostRig()
    }

    private func admission(_ name: String, in stream: String = "show") throws -> IngestAdmission {
        let request = SessionRequest(
            ingesting: try #require(StreamID(stream)), sender: HostRig.sender(name, .host), received: .zero,
            clientAddress: .loopback)
        return IngestAdmission(request: request, welcome: Node.Welcome(host: rig.host, wasPresent: false))
    }

    private mutating func session() -> SessionID { SessionID(using: &random) }

    @Test mutating func `knows who may publish before there is a session`() throws {
        #expect(register.publisher(of: first) == nil)
        register.admit(try admission("ann"), on: first)
        let publisher = try #require(register.publisher(of: first))
        #expect(publisher.stream == rig.host.id && publisher.id == HostRig.ann.id)
        #expect(register.admission(of: first)?.request.participant == HostRig.ann.id)
        #expect(register.status(of: first) == nil)
        #expect(register.statuses(in: rig.host.id).isEmpty)
        let update = register.update(first) { $0.note(.soundLeftOut) }
        #expect(update == nil)
        let lost = register.lose(first)
        #expect(lost == nil && register.publisher(of: first) == nil)
    }

    @Test mutating func `knows a session by its connection, and the other way round`() throws {
        register.admit(try admission("ann"), on: first)
        let id = session()
        register.open(id, on: first, formats)
        #expect(register.admission(of: first) == nil, "it has been used")
        #expect(register.connection(of: id) == first)
        #expect(register.publisher(of: first)?.id == HostRig.ann.id)
        #expect(register.status(of: first) == IngestStatus(HostRig.ann.id, by: "rtmp", formats))
        let changed = register.update(first) { $0.note(.soundLeftOut) }
        #expect(changed?.report.notices == [.soundLeftOut])
        #expect(register.status(of: first) == changed)
        let lost = register.lose(first)
        #expect(lost == id, "the session is still to be ended")
        #expect(register.connection(of: id) == nil && register.status(of: first) == nil)
        let ended = register.end(id)
        #expect(ended == nil)
    }

    @Test mutating func `tells of a session once, whichever ends first`() throws {
        register.admit(try admission("ann"), on: first)
        let id = session()
        register.open(id, on: first, formats)
        let ended = register.end(id)
        #expect(ended == first, "the connection is still to be closed")
        let again = register.end(id)
        #expect(again == nil)
        #expect(register.publisher(of: first)?.id == HostRig.ann.id)
        let lost = register.lose(first)
        #expect(lost == nil)
    }

    @Test mutating func `a publisher that was not admitted gets no session, and none gets two`() throws {
        let (stray, id, late) = (session(), session(), session())
        register.open(stray, on: first, formats)
        #expect(register.connection(of: stray) == nil && register.status(of: first) == nil)
        register.admit(try admission("ann"), on: first)
        register.open(id, on: first, formats)
        register.open(late, on: first, formats)
        #expect(register.connection(of: id) == first && register.connection(of: late) == nil)
    }

    @Test mutating func `lists a stream's publishers by name`() throws {
        let third = IngestConnection(port: .rtmp, number: ConnectionNumber(value: 1))
        register.admit(try admission("vic"), on: first)
        register.admit(try admission("bob"), on: second)
        register.admit(try admission("ann", in: "other"), on: third)
        for connection in [first, second, third] { register.open(session(), on: connection, formats) }
        let statuses = register.statuses(in: rig.host.id)
        #expect(statuses.map(\.participant.description) == ["bob", "vic"])
        #expect(statuses.map(\.name) == ["srt", "rtmp"])
    }

    @Test mutating func `at most a limited number of publishers have their pictures transcoded`() throws {
        let taken = register.convert(first, limit: 1)
        let refused = register.convert(second, limit: 1)
        #expect(taken && !refused && register.conversionCount == 1)
        _ = register.lose(first)
        #expect(register.conversionCount == 0)
        let next = register.convert(second, limit: 1)
        #expect(next)
    }
}
