import Base
import HLS
import Interaction
import Node
import Recordings
import Restream
import Stage
import StoryFeed

/// What the routes need from the server: implemented by `Node`, and by a stand-in in tests.
///
/// Names a refusal type for each call, so that a route can distinguish and translate errors at compile time.
package protocol SessionService: Sendable {
    /// Creates a session from an SDP offer and answers it; its worker knows the session before this returns.
    func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession
    /// The strong entity tag of the session's ICE credentials, without quotes; nil if there is no such session.
    func entityTag(of id: SessionID) async -> String?
    /// A session's stream and purpose; nil if there is no such session.
    func session(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)?
    /// Accepts a client's candidates, which an ICE-lite server only checks for matching credentials (RFC 9725 §4.3).
    func trickle(_ id: SessionID, fragment text: String) async throws(SessionRefusal)
    /// Restarts ICE: gives a session new credentials.
    /// - Returns: the SDP fragment of the answer, and the new entity tag.
    func restartICE(
        _ id: SessionID, fragment text: String
    ) async throws(SessionRefusal) -> (fragment: String, entityTag: String)
    /// Changes a client's video preferences.
    /// - Returns: all preferences in force.
    func prefer(_ patch: DeliveryPatch, in id: SessionID) async throws(SessionRefusal) -> JSON
    /// What is sent to a session and why, and its preferences; nil if there is no such session.
    func quality(of id: SessionID) async -> JSON?
    /// What a session's player may know of its stream; nil if there is no such session.
    /// - Parameter hasMedia: whether to include encodings, for which workers have to be asked.
    func playerView(of id: SessionID, withMedia hasMedia: Bool) async -> PlayerView?
    /// Limits a session to the encoding that its player chose.
    func choose(_ choice: EncodingChoice, in id: SessionID) async throws(EncodingRefusal)
    /// Stream and purpose of a session that its client may end, including one that has just ended by itself.
    func sessionToEnd(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)?
    /// Ends a session.
    /// - Returns: false if there is no such session, and none has just ended by itself.
    func endSession(_ id: SessionID) async -> Bool
    /// The gate that keeps a sender from a stream's programme and recordings; nil if none does.
    func gate(
        of stream: StreamID, before sender: Stage.Sender?
    ) async throws(StageRefusal) -> StageDetails.Gate?
    /// The state of the gate before a session's stream; nil for a session that does not watch a stream.
    func gate(of session: SessionID) async -> JSON?
    /// Adds another token to an existing session.
    /// - Parameter scope: the streams in which the token is valid.
    func show(_ sender: Stage.Sender, in scope: FeedReader.Scope, for session: SessionID) async
    /// A page of the list of sessions, for operators.
    func sessionList(_ filter: SessionFilter) async -> JSON
    /// The dossier of a session that exists or ended recently, by id or label; nil if there is none.
    func dossier(of name: String) async -> JSON?
    /// Records the headers of a session's packets for a time, by id or label.
    /// - Returns: a pcap file.
    func capture(_ name: String, for time: Duration) async throws(CaptureRefusal) -> [UInt8]
    /// Ends a session for an operator, by id or label; false if there is none.
    func endSession(named name: String) async -> Bool
    /// The numbers of the operators' page.
    /// - Parameters: `published` and `played`: how long requests for sessions took to be answered.
    func operatorStatistics(published: DurationHistogram, played: DurationHistogram) async -> JSON
    /// A page of the list of streams, in order.
    /// - Parameters:
    ///   - place: place of the last stream of the previous page; nil for the first page.
    ///   - isOnlyLive: stops at the first stream that is not live.
    func streamPage(
        after place: StreamSnapshot.ListOrder?, limit: Int, isOnlyLive: Bool,
        where isWanted: (StreamSnapshot) -> Bool
    ) async -> StreamDirectory.Page
    /// A stream's public state; nil for one that does not exist and has no session waiting for it.
    func streamSnapshot(_ id: StreamID) async -> StreamSnapshot?
    /// Creates a stream; a repeated request with the same key creates it once.
    func createStream(_ creation: Node.StreamCreation) async throws(StageRefusal) -> StreamSnapshot
    /// Performs a command of a stream's stage.
    /// - Returns: once it is durable.
    func perform(
        _ command: Stage.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> StageAnswer
    /// What a sender is in a stream now; throws for one who is banned or came by a revoked link.
    func look(at stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> StageAnswer
    /// Whether a sender is kept out of a stream unless they are there already, which `look` knows; callable on any
    /// thread.
    func isShutOut(_ sender: Stage.Sender, from stream: StreamID) -> Bool
    /// The times up to which a stream's links and keys are revoked.
    func linkRevocations(of stream: StreamID) async throws(StageRefusal) -> StageRecord.LinkRevocations
    /// Encoders that publish by protocols other than WebRTC: all of them for the host, for others their own.
    func ingestStatuses(of stream: StreamID, for sender: Stage.Sender) async -> [IngestStatus]
    /// The banned identities, for those who may change them.
    func bans(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON
    /// The content of a follower's snapshot.
    func overview(of stream: StreamID) async throws(StageRefusal) -> JSON
    /// Performs a command of a stream's interaction.
    /// - Returns: once it is durable.
    func perform(
        _ command: Interaction.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply
    /// A page of a stream's comments, in order.
    /// - Parameters: `before` and `after`: numbers of comments, exclusive.
    func comments(
        of stream: StreamID, before: Int?, after: Int?, limit: Int, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON
    /// The log of moderation in a stream, for those who may see it.
    func audit(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON
    /// A stream's latest poll, with the sender's own vote.
    func poll(_ number: Int, of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal) -> JSON
    /// A page of a stream's ledger of gifts, in order, for those who may see it.
    func gifts(
        of stream: StreamID, after number: Int, limit: Int, as sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON
    /// The participants who gave most in a stream, or took part most.
    func rank(
        _ name: RankName, of stream: StreamID, period: RankPeriod, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON
    /// Performs a host's command in a duel.
    /// - Returns: the duel, once the change is durable in the host's stream.
    func perform(
        _ command: DuelSide.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON
    /// The two streams of a duel.
    func sides(of duel: DuelID) async throws(StageRefusal) -> (from: StreamID, to: StreamID)
    /// A duel, as one of its streams knows it.
    func duel(_ duel: DuelID, of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal)
        -> JSON
    /// The settings of a stream's interaction.
    func interactionSettings(of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal) -> JSON
    /// Starts to send a stream's changes to a follower.
    /// - Parameters:
    ///   - since: version that the follower has already; nil for a snapshot.
    ///   - expiry: when the follower's token ends and the socket is closed; nil for never.
    /// - Returns: the function that ends it.
    func follow(
        _ stream: StreamID, as sender: Stage.Sender?, since: UInt64?, until expiry: WallTime?,
        _ end: any SyncFollower
    ) async throws(StageRefusal) -> @Sendable () async -> Void
    /// Assigns a viewer's session that was created without a token to an identity.
    func adopt(_ id: SessionID, in stream: StreamID, as sender: Stage.Sender) async
    /// Stores the picture that viewers see while the host's camera is off; nil for the last frame, blurred.
    /// - Returns: false if it could not be stored, or the stored one not be deleted.
    func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool
    /// A stream's latest preview; nil if there is none.
    func preview(of stream: StreamID) async -> StoredPreview?
    /// A page of the feed for a reader.
    func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) async throws(CursorRefusal) -> FeedPage
    /// Starts to send changes of the feed's list to a follower.
    func followFeed(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower
    ) async -> FeedFollowing
    /// Performs a feed viewer's message.
    /// - Parameter request: the message's number, counted by the client; nil for none.
    /// - Returns: all slots of the session as they are now.
    func perform(_ message: FeedMessage, request: UInt32?, in id: SessionID) async throws(FeedRefusal) -> JSON
    /// Starts to record a stream, or returns the recording under way.
    func record(_ stream: StreamID) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool)
    /// Stops recording.
    /// - Returns: the completed recording.
    func stopRecording(_ stream: StreamID) async throws(RecordingRefusal) -> RecordingEntry
    /// Starts to make a clip of the last seconds of a live stream.
    /// - Returns: the clip's entry, before its file is complete.
    func makeClip(of stream: StreamID, seconds: Int, title: String?) async throws(ClipRefusal)
        -> RecordingEntry
    /// A stream's recordings and clips, earliest first, including those under way.
    func recordings(of stream: StreamID) async -> [RecordingEntry]
    /// Comments written while a recording was made, by their time in it.
    func comments(on recording: RecordingEntry, after number: Int, limit: Int) async throws(StageRefusal)
        -> JSON
    /// Removes a recording that has ended, with its file.
    func removeRecording(_ id: String, of stream: StreamID) async throws(RecordingRefusal)
    /// Path of a recording's file; nil if there is none.
    func readingPath(of recording: RecordingEntry) -> String?
    /// The fragments of a recording, read from its file, for HLS.
    func fragments(of recording: RecordingEntry) async throws(RecordingRefusal) -> FragmentIndex
    /// The multivariant playlist of a live stream.
    /// - Parameter listsAll: also lists renditions that not every player supports.
    func hlsMultivariantPlaylist(
        of stream: StreamID, _ names: HLSNames, listsAll: Bool
    ) async throws(HLSRefusal) -> String
    /// The media playlist of a rendition, once it contains what the query names.
    /// - Parameter reachesBack: includes the window's segments on the disk; for the source only.
    func hlsMediaPlaylist(
        of stream: StreamID, uri: String, _ query: PlaylistQuery, reachesBack: Bool
    ) async throws(HLSRefusal) -> String
    /// A file that an HLS playlist names; waits for one that is announced but not complete.
    func hlsFile(named name: String, of stream: StreamID) async throws(HLSRefusal) -> HLSFile
    /// The same without waiting, callable on any thread; nil unless it is in memory and the stream has no gate.
    func hlsFileAtHand(named name: String, of stream: StreamID) -> [UInt8]?
    /// Adds a target to which a stream's programme is sent.
    /// - Returns: the target's state, once it is durable.
    func addRestream(
        to address: RestreamAddress, key: Secret<String>, of stream: StreamID
    ) async throws(RestreamRefusal) -> RestreamStatus
    /// A stream's targets, in the order in which they were added.
    func restreams(of stream: StreamID) async throws(RestreamRefusal) -> [RestreamStatus]
    /// Removes a target and ends its connection.
    func removeRestream(_ number: Int, of stream: StreamID) async throws(RestreamRefusal)
    /// Whether new sessions are accepted.
    var isReady: Bool { get async }
    /// All metrics of the node.
    /// - Parameters: `published` and `played`: how long their requests took to be answered.
    func metrics(published: DurationHistogram, played: DurationHistogram) async -> [Metric]
}

extension Node: SessionService {
    /// False while the node is stopping.
    package var isReady: Bool { acceptsSessions }

    /// The numbers of the operators' page, from the workers' latest reports.
    /// - Parameters:
    ///   - published: how long requests of publishers took to be answered.
    ///   - played: how long those of viewers took.
    package func operatorStatistics(published: DurationHistogram, played: DurationHistogram) async -> JSON {
        OperatorStatistics.json(
            statistics(), sessionCounts, streamSnapshots, at: moment, published: published, played: played)
    }

    /// The node's part of `/metrics`.
    package func metrics(published: DurationHistogram, played: DurationHistogram) async -> [Metric] {
        // One copy of the workers' reports for all metrics of a scrape, so that they agree.
        let workers = statistics()
        return MetricsOfNode.collect(workers, streamSnapshots)
            + [MetricsOfNode.joins(workers, published: published, played: played)]
            + MetricsOfNode.feed(workers, feedStatistics())
            + (await transcoderMetrics) + compositionMetrics + renditionMetrics
            + (await packagingMetrics) + (await restreamMetrics)
            + MetricsOfNode.control(inboxCounters) + retentionMetrics
    }
}
