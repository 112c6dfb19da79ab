import Base
import Foundation
import HTTP
import HTTPTestSupport
import Net
import Restream
import TestSupport
import Testing

@testable import sfu_bench

/// Patient: a busy machine is no server that does not answer.
private let client = SignallingClient(connections: 2, timeout: 3_600)

@Suite struct `A URL for an encoder` {
    @Test(arguments: [
        "", "live", "rtmp:", "rtmp://127.0.0.1", "rtmp://127.0.0.1/live", "rtmp://127.0.0.1/live/",
        "http://127.0.0.1/live/key", "rtmp://ann:secret@127.0.0.1/live/key", "rtmp://127.0.0.1:22/live/key",
        "rtmp://127.0.0.1/live/two words", "rtmp://127.0.0.1?a=/live/key",
    ])
    func `of RTMP is refused`(text: String) {
        #expect(throws: UsageError.self) { _ = try RTMPDestination(parsing: text) }
    }

    @Test func `of RTMP may have an application with slashes`() throws {
        let destination = try RTMPDestination(parsing: "rtmps://[::1]:4430/app/instance/key?a=b/c?d")
        #expect(destination.address.isSecure && destination.address.host == "::1")
        #expect(destination.address.application == "app/instance" && destination.key.exposed == "key?a=b/c?d")
    }

    /// What is on the screen may be seen by others.
    @Test func `of RTMP does not show a key that it cannot use`() throws {
        let error = #expect(throws: UsageError.self) {
            _ = try RTMPDestination(server: "rtmp://127.0.0.1/live", key: "xyzzy plugh")
        }
        let words = try #require(error).description
        #expect(!words.contains("xyzzy"))
    }

    @Test(arguments: [
        "", "srt://127.0.0.1:9710", "srt://127.0.0.1:9710?streamid=", "srt://127.0.0.1?streamid=a",
        "srt://127.0.0.1:0?streamid=a", "http://127.0.0.1:9710?streamid=a",
        "srt://127.0.0.1:9710?streamid=a&mode=listener", "srt://127.0.0.1:9710?streamid=a&mode=",
        "srt://127.0.0.1:9710?streamid=a&latency=19", "srt://127.0.0.1:9710?streamid=a&latency=8001",
        "srt://127.0.0.1:9710?streamid=a&latency=", "srt://127.0.0.1:9710?streamid=a&latency=0.2",
        "srt://127.0.0.1:9710?streamid=a&passphrase=", "srt://127.0.0.1:9710?streamid=a&passphrase=123456789",
        "srt://127.0.0.1:9710?streamid=a&pbkeylen=32", "srt://127.0.0.1:9710?STREAMID=a",
    ])
    func `of SRT is refused`(text: String) {
        #expect(throws: UsageError.self) { _ = try SRTDestination(parsing: text) }
    }

    @Test(arguments: [(512, true), (513, false)])
    func `of SRT has a stream ID of 512 bytes at most`(count: Int, isWell: Bool) {
        let text = "srt://127.0.0.1:9710?streamid=" + String(repeating: "a", count: count)
        let destination = try? SRTDestination(parsing: text)
        #expect((destination != nil) == isWell)
    }

    @Test(arguments: [(10, true), (79, true), (80, false)])
    func `of SRT has a passphrase that SRT can use`(count: Int, isWell: Bool) {
        let words = String(repeating: "a", count: count)
        let destination = try? SRTDestination(parsing: "srt://127.0.0.1:9710?streamid=a&passphrase=\(words)")
        #expect((destination != nil) == isWell)
        #expect(destination?.settings.passphrase?.exposed == (isWell ? words : nil))
    }

    @Test(arguments: [20, 8_000]) func `of SRT has a latency within bounds`(milliseconds: Int) throws {
        let text = "srt://127.0.0.1:9710?streamid=a&latency=\(milliseconds)"
        #expect(try SRTDestination(parsing: text).settings.latency == milliseconds)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `An address that the server gives to encoders` {
    /// Asks a server that answers this, by RTMP or by SRT; returns what it says of where it leads, or why nowhere.
    private func asked(
        _ body: String, status: Int = 200, bySRT: Bool = false
    ) async throws -> String {
        let requests = Watched<[String]>([])
        let found = Watched("")
        let handler = ClosureHandler(answer: { request in
            requests.change { $0.append("\(request.path) \(request.headers["authorization"] ?? "none")") }
            return HTTPResponse(status: status, body: Array(body.utf8))
        })
        try await withServer(handler) { server in
            let address = try ServerAddress(parsing: "\(server.address)")
            let words: String
            do {
                if bySRT {
                    let to = try await SRTDestination.asked(of: address, for: "talk", token: "t", client)
                    words = "\(to.host) \(to.port) \(to.streamID.exposed) \(to.settings.latency)"
                } else {
                    let to = try await RTMPDestination.asked(of: address, for: "talk", token: "t", client)
                    words = "\(to.address) \(to.key.exposed)"
                }
            } catch {
                words = "\(error)"
            }
            found.change { $0 = words }
        }
        #expect(requests.value == ["/v1/streams/talk/ingest Bearer t"])
        return found.value
    }

    @Test func `of RTMP is the one without TLS if there are two`() async throws {
        let plain = #"{"rtmp":{"server":"rtmps://a/live","plainServer":"rtmp://b/live","key":"k"}}"#
        #expect(try await asked(plain) == "rtmp://b/live k")
        let secure = #"{"rtmp":{"server":"rtmps://a/live","key":"k"}}"#
        #expect(try await asked(secure) == "rtmps://a/live k")
    }

    @Test func `of SRT has its stream ID, and the usual latency`() async throws {
        let body = #"{"srt":{"server":"srt://[::1]:9710","streamId":"publish:talk:k","passphrase":false}}"#
        #expect(try await asked(body, bySRT: true) == "::1 9710 publish:talk:k 200")
    }

    @Test(
        arguments: [
            (#"{"rtmp":null,"srt":null}"#, "does not accept"), ("{}", "does not accept"),
            ("[]", "does not give an address for encoders"), ("", "does not give an address for encoders"),
            (#"{"rtmp":{"server":"rtmp://a/l"},"srt":{"server":"srt://a:1"}}"#, "does not give an address"),
        ])
    func `is none where the server gives none`(body: String, words: String) async throws {
        let (rtmp, srt) = (try await asked(body), try await asked(body, bySRT: true))
        #expect(rtmp.contains(words) && srt.contains(words), "\(rtmp); \(srt)")
    }

    @Test(
        arguments: [
            (#"{"server":"srt://a:1","streamId":"i","passphrase":true}"#, "needs a passphrase"),
            (#"{"server":"srt://a:1","passphrase":false}"#, "does not give a stream ID"),
            (#"{"server":"srt://a","streamId":"i","passphrase":false}"#, "does not give a stream ID"),
            (#"{"server":"srt://a:70000","streamId":"i","passphrase":false}"#, "does not give a stream ID"),
        ])
    func `of SRT is of no use without all that it needs`(srt: String, words: String) async throws {
        let found = try await asked(#"{"srt":"# + srt + "}", bySRT: true)
        #expect(found.contains(words), "\(found)")
    }

    @Test func `is refused for the server's reason`() async throws {
        let body = #"{"detail":"only the host may know that"}"#
        for bySRT in [false, true] {
            let found = try await asked(body, status: 403, bySRT: bySRT)
            #expect(found == "HTTP 403: only the host may know that")
        }
    }
}
