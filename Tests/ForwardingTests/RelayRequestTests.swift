import Base
import Testing

@testable import Forwarding

/// Worker 1 of three, and what the others hear of it.
@Suite struct `Requests to other workers` {
    private typealias Subject = RelayRequests.Subject

    private let links: [WorkerLinks]
    private let talk: StreamID
    private let show: StreamID
    private var requests: RelayRequests
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)

    init() throws {
        let exchange = RelayExchange(workers: 3)
        links = (0..<3).map { WorkerLinks(index: $0, exchange: exchange) }
        requests = RelayRequests(over: links[1])
        talk = try #require(StreamID("talk"))
        show = try #require(StreamID("show"))
    }

    private func track(_ number: UInt64, of worker: Int) -> Subject {
        .track(TrackKey(worker: worker, track: TrackID(number: number)))
    }

    /// What a worker was told since it was last asked.
    private func told(_ worker: Int) -> [String] {
        links[1].flush()
        return links[worker].takeAll().flatMap { sender, batch in
            #expect(sender == 1)
            return batch.items.map { item in
                switch item {
                case .want(let stream, let isWanted): "want \(stream) \(isWanted)"
                case .subscribe(let track, let isSubscribed): "subscribe \(track.number) \(isSubscribed)"
                default: "else"
                }
            }
        }
    }

    @Test mutating func `go to every worker for a programme, and to its own for a track`() {
        requests.begin(.programme(talk))
        requests.begin(track(7, of: 2))
        #expect(told(0) == ["want talk true"])
        #expect(told(2) == ["want talk true", "subscribe 7 true"])
        #expect(told(1).isEmpty)
    }

    @Test mutating func `end ten seconds after the last use, and are not ended twice`() {
        let subjects = [Subject.programme(talk), track(7, of: 2)]
        for subject in subjects {
            requests.begin(subject)
            requests.letLinger(subject, at: start)
        }
        _ = (told(0), told(2))
        var overdue = requests.overdue(at: start + .milliseconds(9_999))
        #expect(overdue.isEmpty && Set(requests.lingering.keys) == Set(subjects))
        overdue = requests.overdue(at: start + .milliseconds(10_999))
        #expect(overdue == subjects)
        #expect(told(0).isEmpty, "it is the caller who ends them")
        for subject in subjects + subjects { requests.end(subject) }
        #expect(requests.lingering.isEmpty)
        #expect(told(0) == ["want talk false"])
        #expect(told(2) == ["want talk false", "subscribe 7 false"])
        overdue = requests.overdue(at: start + .seconds(60))
        #expect(overdue.isEmpty)
    }

    @Test mutating func `need not be made again while they linger`() {
        requests.begin(.programme(talk))
        requests.letLinger(.programme(talk), at: start)
        _ = told(0)
        requests.begin(.programme(talk))
        #expect(!requests.isLingering(.programme(talk)))
        let overdue = requests.overdue(at: start + .seconds(60))
        #expect(overdue.isEmpty && told(0).isEmpty)
        // Used again, it lingers anew.
        requests.letLinger(.programme(talk), at: start + .seconds(60))
        requests.end(.programme(talk))
        requests.begin(.programme(talk))
        #expect(told(0) == ["want talk false", "want talk true"])
    }

    @Test mutating func `are looked at once a second`() {
        requests.letLinger(.programme(talk), at: start)
        requests.letLinger(.programme(show), at: start + .milliseconds(500))
        var overdue = requests.overdue(at: start + .seconds(10))
        #expect(overdue == [.programme(talk)])
        overdue = requests.overdue(at: start + .milliseconds(10_999))
        #expect(overdue.isEmpty)
        overdue = requests.overdue(at: start + .seconds(11))
        #expect(overdue == [.programme(show), .programme(talk)], "it was not ended yet")
    }

    @Test mutating func `end in an order that does not depend on hashing`() {
        let subjects = [
            Subject.programme(show), .programme(talk), track(2, of: 0), track(10, of: 0), track(1, of: 2),
        ]
        for subject in subjects.reversed() { requests.letLinger(subject, at: start) }
        let overdue = requests.overdue(at: start + .seconds(10))
        #expect(overdue == subjects)
    }

    @Test mutating func `are none where there is a single worker`() {
        requests = RelayRequests(over: nil)
        requests.begin(.programme(talk))
        requests.letLinger(.programme(talk), at: start)
        let overdue = requests.overdue(at: start + .seconds(60))
        #expect(overdue.isEmpty && !requests.isLingering(.programme(talk)))
    }
}
