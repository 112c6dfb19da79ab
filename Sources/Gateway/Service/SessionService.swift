import Base
import HLS
import Interaction
import Node
import Recordings
import Restream
import Stage
import StoryFeed

/// What the routes need of the server behind them; a `Node`, and a stand-in in tests.
package protocol SessionService: Sendable {
    /// Makes a session of an offer and answers it; its worker knows it before this returns.
    func createSession(_ request: SessionRequest) async throws(SessionRefusal) -> CreatedSession
    /// The strong entity tag of the session's ICE credentials, without quotes.
    func entityTag(of id: SessionID) async -> String?
    /// Which stream and purpose a session has; nil if there is no such session.
    func session(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)?
    /// Takes candidates of a client, which an ICE-lite server only checks to belong here (RFC 9725 §4.3).
    func trickle(_ id: SessionID, fragment text: String) async throws(SessionRefusal)
    /// Gives a session new ICE credentials.
    /// - Returns: the fragment that answers, and the new entity tag.
    func restartICE(
        _ id: SessionID, fragment text: String
    ) async throws(SessionRefusal) -> (fragment: String, entityTag: String)
    /// Changes what a session's client wants of the pictures.
    /// - Returns: all that it wants now.
    func prefer(_ patch: DeliveryPatch, in id: SessionID) async throws(SessionRefusal) -> JSON
    /// What a session is sent and why, and what its client wants; nil if there is no such session.
    func quality(of id: SessionID) async -> JSON?
    /// What a session's player may be told of what it watches; nil if there is no such session.
    /// - Parameter hasMedia: whether its pictures are asked for, too.
    func playerView(of id: SessionID, withMedia hasMedia: Bool) async -> PlayerView?
    /// Sends a session's player no more than what it chose.
    func choose(_ choice: EncodingChoice, in id: SessionID) async throws(EncodingRefusal)
    /// Which stream and purpose a session has that its client may end: also one that has just ended by itself.
    func sessionToEnd(_ id: SessionID) async -> (stream: StreamID, purpose: SessionRequest.Purpose)?
    /// - Returns: false if there is no such session, and none has just ended by itself.
    func endSession(_ id: SessionID) async -> Bool
    /// What stands between somebody and a stream's programme, and what was recorded of it; nil where nothing does.
    func gate(
        of stream: StreamID, before sender: Stage.Sender?
    ) async throws(StageRefusal) -> StageDetails.Gate?
    /// How a session stands with the gate of what it watches; nil if it watches nothing.
    func gate(of session: SessionID) async -> JSON?
    /// Somebody shows another token for a session that they have.
    /// - Parameter scope: the streams in which they are known by it.
    func show(_ sender: Stage.Sender, in scope: FeedReader.Scope, for session: SessionID) async
    /// A part of the list of sessions, for operators.
    func sessionList(_ filter: SessionFilter) async -> JSON
    /// All that is known of a session that lives or ended lately, by its id or its label; nil if there is none.
    func dossier(of name: String) async -> JSON?
    /// Records the headers of a session's packets for a while, by its id or its label.
    /// - Returns: a capture as Wireshark reads it (pcap).
    func capture(_ name: String, for time: Duration) async throws(CaptureRefusal) -> [UInt8]
    /// Ends a session for an operator, by its id or its label; false if there is none.
    func endSession(named name: String) async -> Bool
    /// What the operators' page draws.
    /// - Parameters: `published` and `played`: how long requests for sessions took to be answered.
    func operatorStatistics(published: DurationHistogram, played: DurationHistogram) async -> JSON
    /// A part of the list of streams, in order.
    func streamPage(
        after place: StreamSnapshot.ListOrder?, limit: Int, isOnlyLive: Bool,
        where isWanted: (StreamSnapshot) -> Bool
    ) async -> StreamDirectory.Page
    /// Nil for a stream that nobody made and nobody waits for.
    func streamSnapshot(_ id: StreamID) async -> StreamSnapshot?
    /// Makes a stream; the same request with the same key makes it once.
    func createStream(_ creation: Node.StreamCreation) async throws(StageRefusal) -> StreamSnapshot
    /// - Returns: once it is durable.
    func perform(
        _ command: Stage.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> StageAnswer
    /// What somebody is in a stream now.
    func look(at stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> StageAnswer
    /// Which of a stream's links lead nowhere any more.
    func linkRevocations(of stream: StreamID) async throws(StageRefusal) -> StageRecord.LinkRevocations
    /// What comes by another protocol than WebRTC, for the host all of it and for others their own.
    func ingestStatuses(of stream: StreamID, for sender: Stage.Sender) async -> [IngestStatus]
    /// Who is kept out, for those who may change it.
    func bans(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON
    /// All that followers know.
    func overview(of stream: StreamID) async throws(StageRefusal) -> JSON
    /// Does what somebody of the audience wants.
    /// - Returns: once it is durable.
    func perform(
        _ command: Interaction.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply
    /// A part of a stream's comments, in order.
    func comments(
        of stream: StreamID, before: Int?, after: Int?, limit: Int, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON
    /// Who took what away or showed it in a stream, for those who may see it.
    func audit(of stream: StreamID, as sender: Stage.Sender) async throws(StageRefusal) -> JSON
    /// A stream's latest poll, and what somebody chose in it.
    func poll(_ number: Int, of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal) -> JSON
    /// A part of what was given in a stream, in order, for those who may see it.
    func gifts(
        of stream: StreamID, after number: Int, limit: Int, as sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON
    /// Those who gave most in a stream, or took part most.
    func rank(
        _ name: RankName, of stream: StreamID, period: RankPeriod, as sender: Stage.Sender?
    ) async throws(StageRefusal) -> JSON
    /// Does what a host wants of a duel.
    /// - Returns: the duel, once it is durable in the host's stream.
    func perform(
        _ command: DuelSide.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON
    /// Which streams a duel is between.
    func sides(of duel: DuelID) async throws(StageRefusal) -> (from: StreamID, to: StreamID)
    /// A duel as one of its streams knows it.
    func duel(_ duel: DuelID, of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal)
        -> JSON
    /// What a stream's audience may do.
    func interactionSettings(of stream: StreamID, as sender: Stage.Sender?) async throws(StageRefusal) -> JSON
    /// Begins to tell somebody of a stream.
    /// - Returns: what ends it.
    func follow(
        _ stream: StreamID, as sender: Stage.Sender?, since: UInt64?, until expiry: WallTime?,
        _ end: any SyncFollower
    ) async throws(StageRefusal) -> @Sendable () async -> Void
    /// Notes whose a viewer's session is that was made without a token.
    func adopt(_ id: SessionID, in stream: StreamID, as sender: Stage.Sender) async
    /// Notes the picture that viewers see while the host's camera is off; nil for the last frame, blurred.
    /// - Returns: false if there is no room for it.
    func setPausePicture(_ file: [UInt8]?, of stream: StreamID) async -> Bool
    /// The latest picture of a stream.
    func preview(of stream: StreamID) async -> StoredPreview?
    /// A part of the feed for somebody.
    func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) async throws(CursorRefusal) -> FeedPage
    /// Begins to tell somebody of the list.
    func followFeed(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower
    ) async -> FeedFollowing
    /// Does what a feed viewer asked for.
    /// - Parameter request: its number, if it has one.
    /// - Returns: all slots of the session, as they are now.
    func perform(_ message: FeedMessage, request: UInt32?, in id: SessionID) async throws(FeedRefusal) -> JSON
    /// Begins to record a stream, or says that it is being recorded.
    func record(_ stream: StreamID) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool)
    /// - Returns: the recording, complete.
    func stopRecording(_ stream: StreamID) async throws(RecordingRefusal) -> RecordingEntry
    /// Has a clip made of the last seconds of a live stream.
    /// - Returns: it, before it is complete.
    func makeClip(of stream: StreamID, seconds: Int, title: String?) async throws(ClipRefusal)
        -> RecordingEntry
    /// Of one stream, the earliest first, those under way too.
    func recordings(of stream: StreamID) async -> [RecordingEntry]
    /// What was written while a recording was made, by its time.
    func comments(on recording: RecordingEntry, after number: Int, limit: Int) async throws(StageRefusal)
        -> JSON
    /// Removes one that has ended, with its file.
    func removeRecording(_ id: String, of stream: StreamID) async throws(RecordingRefusal)
    /// Where a recording's bytes are.
    func readingPath(of recording: RecordingEntry) -> String?
    /// How a recording is played in fragments, as its file says it.
    func fragments(of recording: RecordingEntry) async throws(RecordingRefusal) -> FragmentIndex
    /// The HLS playlist that names the media playlists.
    /// - Parameter listsAll: also of what not every player takes.
    func hlsMultivariantPlaylist(
        of stream: StreamID, _ names: HLSNames, listsAll: Bool
    ) async throws(HLSRefusal) -> String
    /// The HLS playlist of a rendition's segments and parts, once what the query wants is in it; the source's may reach
    /// back to what is on the disk.
    func hlsMediaPlaylist(
        of stream: StreamID, uri: String, _ query: PlaylistQuery, reachesBack: Bool
    ) async throws(HLSRefusal) -> String
    /// A file that an HLS playlist names, once it is there.
    func hlsFile(named name: String, of stream: StreamID) async throws(HLSRefusal) -> HLSFile
    /// The same at once, on whatever thread, of a live stream without a gate; nil where it does not lie in memory.
    func hlsFileAtHand(named name: String, of stream: StreamID) -> [UInt8]?
    /// Has a stream's programme sent to a target, too.
    /// - Returns: it, once it is durable.
    func addRestream(
        to address: RestreamAddress, key: Secret<String>, of stream: StreamID
    ) async throws(RestreamRefusal) -> RestreamStatus
    /// A stream's targets, in the order in which they were added.
    func restreams(of stream: StreamID) async throws(RestreamRefusal) -> [RestreamStatus]
    /// Sends nothing to a target any more.
    func removeRestream(_ number: Int, of stream: StreamID) async throws(RestreamRefusal)
    /// Whether it takes new sessions.
    var isReady: Bool { get async }
    /// - Parameters: `published` and `played`: how long their requests took to be answered.
    func metrics(published: DurationHistogram, played: DurationHistogram) async -> [Metric]
}

extension Node: SessionService {
    /// False while the node stops.
    package var isReady: Bool { acceptsSessions }

    /// What the page for operators shows.
    /// - Parameters:
    ///   - published: how long joins of publishers took.
    ///   - played: how long those of viewers took.
    package func operatorStatistics(published: DurationHistogram, played: DurationHistogram) async -> JSON {
        OperatorStatistics.json(
            statistics(), sessionCounts, streamSnapshots, at: moment, published: published, played: played)
    }

    /// What `/metrics` tells of the node.
    package func metrics(published: DurationHistogram, played: DurationHistogram) async -> [Metric] {
        let workers = statistics()
        return MetricsOfNode.collect(workers, streamSnapshots)
            + [MetricsOfNode.joins(workers, published: published, played: played)]
            + MetricsOfNode.feed(workers, feedStatistics())
            + (await transcoderMetrics) + compositionMetrics + renditionMetrics
            + (await packagingMetrics) + (await restreamMetrics)
            + MetricsOfNode.control(inboxCounters) + retentionMetrics
    }
}
