import HTTP
import Node
import Stage
import StoryFeed

extension Router {
    /// All routes; `openapi.json` describes each of them but the pages, under the same `operationId`.
    ///
    /// HEAD is allowed wherever GET is, OPTIONS everywhere. The first match counts, so a route with a literal segment
    /// stands before one with a parameter in its place.
    static let routes: [Route] = [
        // WHIP: a session that publishes.
        Route(.post, "/whip/{stream}", "publish") { try await $0.createSession($1, .publish) },
        Route(.get, "/whip/{stream}", "publishPreview") { try $0.preview($1, .publish) },
        Route(.get, "/whip/{stream}/{session}", "publishSession") { try await $0.showSession($1, .publish) },
        Route(.patch, "/whip/{stream}/{session}", "publishTrickle") {
            try await $0.updateSession($1, .publish)
        },
        Route(.delete, "/whip/{stream}/{session}", "publishEnd") { try await $0.endSession($1, .publish) },
        // WHEP: a session that watches one stream, with the extensions for events and layers.
        Route(.post, "/whep/{stream}", "play") { try await $0.createSession($1, .play) },
        Route(.get, "/whep/{stream}", "playPreview") { try $0.preview($1, .play) },
        Route(.get, "/whep/{stream}/{session}", "playSession") { try await $0.showSession($1, .play) },
        Route(.patch, "/whep/{stream}/{session}", "playTrickle") { try await $0.updateSession($1, .play) },
        Route(.get, "/whep/{stream}/{session}/quality", "playQuality") {
            try await $0.showQuality($1, .play)
        },
        Route(.get, "/whep/{stream}/{session}/gate", "playGate") { try await $0.showGate($1, .play) },
        Route(.post, "/whep/{stream}/{session}/gate", "openPlayGate") { try await $0.openGate($1, .play) },
        Route(.post, "/whep/{stream}/{session}/events", "choosePlayEvents") {
            try await $0.chooseEvents($1)
        },
        Route(.get, "/whep/{stream}/{session}/events", "playEvents") { try await $0.streamEvents($1) },
        Route(.post, "/whep/{stream}/{session}/layer", "choosePlayLayer") { try await $0.chooseLayer($1) },
        Route(.delete, "/whep/{stream}/{session}/layer", "unchoosePlayLayer") {
            try await $0.unchooseLayer($1)
        },
        Route(.delete, "/whep/{stream}/{session}", "playEnd") { try await $0.endSession($1, .play) },
        // HLS of live streams and recordings. The token may be in the path, where players and caches keep it.
        Route(.get, "/hls/{stream}/index.m3u8", "showHLS") { try await $0.showHLS($1) },
        Route(.get, "/hls/{stream}/media.m3u8", "showHLSMedia") { try await $0.showHLSMedia($1) },
        Route(.get, "/hls/{stream}/dvr.m3u8", "showHLSWindow") { try await $0.showHLSWindow($1) },
        Route(.get, "/hls/{stream}/{file}", "showHLSFile", atOnce: { try $0.hlsFileAtHand($1) }) {
            try await $0.showHLSFile($1)
        },
        Route(.get, "/hls/{stream}/recordings/{recordedFile}", "showRecordedHLS") {
            try await $0.showRecordedHLS($1)
        },
        Route(.get, "/hls/{stream}/t/{token}/index.m3u8", "showHLSByToken") { try await $0.showHLS($1) },
        Route(.get, "/hls/{stream}/t/{token}/media.m3u8", "showHLSMediaByToken") {
            try await $0.showHLSMedia($1)
        },
        Route(.get, "/hls/{stream}/t/{token}/dvr.m3u8", "showHLSWindowByToken") {
            try await $0.showHLSWindow($1)
        },
        Route(.get, "/hls/{stream}/t/{token}/recordings/{recordedFile}", "showRecordedHLSByToken") {
            try await $0.showRecordedHLS($1)
        },
        Route(
            .get, "/hls/{stream}/t/{token}/{file}", "showHLSFileByToken", atOnce: { try $0.hlsFileAtHand($1) }
        ) {
            try await $0.showHLSFile($1)
        },
        // Credentials and pictures of them.
        Route(.post, "/v1/tokens", "makeToken") { try $0.makeToken($1) },
        Route(.post, "/v1/qr-codes", "drawQRCode") { try $0.drawQRCode($1) },
        // Streams: list, settings, placement and state.
        Route(.get, "/v1/streams", "listStreams") { try await $0.listStreams($1) },
        Route(.post, "/v1/streams", "createStream") { try await $0.createStream($1) },
        Route(.get, "/v1/streams/{stream}", "showStream") { try await $0.showStream($1) },
        Route(.patch, "/v1/streams/{stream}", "editStream") { try await $0.editStream($1) },
        Route(.get, "/v1/streams/{stream}/placement", "showPlacement") { try await $0.showPlacement($1) },
        Route(.patch, "/v1/streams/{stream}/placement", "placeStream") { try await $0.placeStream($1) },
        Route(.post, "/v1/streams/{stream}/live", "goLive") { try await $0.change($1, .goLive) },
        Route(.post, "/v1/streams/{stream}/end", "endStream") { try await $0.change($1, .end) },
        // The stage: participants, bans, hands, invitations and speakers.
        Route(.get, "/v1/streams/{stream}/participants", "showParticipants") {
            try await $0.showParticipants($1)
        },
        Route(.post, "/v1/streams/{stream}/participants", "enter") { try await $0.enter($1) },
        Route(.delete, "/v1/streams/{stream}/participants/{participant}", "removeParticipant") {
            try await $0.removeParticipant($1)
        },
        Route(.get, "/v1/streams/{stream}/bans", "showBans") { try await $0.showBans($1) },
        Route(.post, "/v1/streams/{stream}/bans", "ban") { try await $0.ban($1) },
        Route(.delete, "/v1/streams/{stream}/bans/{participant}", "unban") { try await $0.unban($1) },
        Route(.post, "/v1/streams/{stream}/hands", "raiseHand") { try await $0.raiseHand($1) },
        Route(.delete, "/v1/streams/{stream}/hands/{participant}", "lowerHand") {
            try await $0.lowerHand($1)
        },
        Route(.patch, "/v1/streams/{stream}/hands/{participant}", "arrangeHand") {
            try await $0.arrangeHand($1)
        },
        Route(.post, "/v1/streams/{stream}/invitations", "invite") { try await $0.invite($1) },
        Route(.delete, "/v1/streams/{stream}/invitations/{participant}", "endInvitation") {
            try await $0.endInvitation($1)
        },
        Route(.post, "/v1/streams/{stream}/invitations/{participant}/accept", "acceptInvitation") {
            try await $0.acceptInvitation($1)
        },
        Route(.patch, "/v1/streams/{stream}/speakers/{participant}", "describeSpeaker") {
            try await $0.describeSpeaker($1)
        },
        Route(.delete, "/v1/streams/{stream}/speakers/{participant}", "leaveStage") {
            try await $0.leaveStage($1)
        },
        Route(.post, "/v1/streams/{stream}/speakers/{participant}/mute", "requestMute") {
            try await $0.requestMute($1)
        },
        // The audience: comments, reactions, polls, gifts, cards and duels.
        Route(.post, "/v1/streams/{stream}/comments", "writeComment") { try await $0.writeComment($1) },
        Route(.get, "/v1/streams/{stream}/comments", "listComments") { try await $0.listComments($1) },
        Route(.delete, "/v1/streams/{stream}/comments/{comment}", "deleteComment") {
            try await $0.deleteComment($1)
        },
        Route(.put, "/v1/streams/{stream}/comments/{comment}/pin", "pinComment") {
            try await $0.pinComment($1)
        },
        Route(.delete, "/v1/streams/{stream}/pin", "unpinComment") { try await $0.unpinComment($1) },
        Route(.put, "/v1/streams/{stream}/silences/{participant}", "silence") { try await $0.silence($1) },
        Route(.delete, "/v1/streams/{stream}/silences/{participant}", "unsilence") {
            try await $0.unsilence($1)
        },
        Route(.post, "/v1/streams/{stream}/reactions", "react") { try await $0.react($1) },
        Route(.post, "/v1/streams/{stream}/polls", "openPoll") { try await $0.openPoll($1) },
        Route(.get, "/v1/streams/{stream}/polls/{poll}", "showPoll") { try await $0.showPoll($1) },
        Route(.put, "/v1/streams/{stream}/polls/{poll}/vote", "vote") { try await $0.vote($1) },
        Route(.post, "/v1/streams/{stream}/polls/{poll}/close", "closePoll") { try await $0.closePoll($1) },
        Route(.put, "/v1/streams/{stream}/gifts/{key}", "giveGift") { try await $0.giveGift($1) },
        Route(.get, "/v1/streams/{stream}/gifts", "listGifts") { try await $0.listGifts($1) },
        Route(.get, "/v1/streams/{stream}/ranks/{rank}", "showRank") { try await $0.showRank($1) },
        Route(.put, "/v1/streams/{stream}/card", "showCard") { try await $0.showCard($1) },
        Route(.delete, "/v1/streams/{stream}/card", "removeCard") { try await $0.removeCard($1) },
        Route(.post, "/v1/duels", "inviteToDuel") { try await $0.inviteToDuel($1) },
        Route(.get, "/v1/duels/{duel}", "showDuel") { try await $0.showDuel($1) },
        Route(.post, "/v1/duels/{duel}/accept", "acceptDuel") { try await $0.acceptDuel($1) },
        Route(.post, "/v1/duels/{duel}/decline", "declineDuel") { try await $0.declineDuel($1) },
        Route(.post, "/v1/duels/{duel}/cancel", "cancelDuel") { try await $0.cancelDuel($1) },
        Route(.post, "/v1/duels/{duel}/leave", "leaveDuel") { try await $0.leaveDuel($1) },
        Route(.post, "/v1/duels/{duel}/rematch", "rematchDuel") { try await $0.rematchDuel($1) },
        Route(.get, "/v1/streams/{stream}/audit", "showAudit") { try await $0.showAudit($1) },
        Route(.get, "/v1/streams/{stream}/interaction", "showInteraction") {
            try await $0.showInteraction($1)
        },
        Route(.patch, "/v1/streams/{stream}/interaction", "editInteraction") {
            try await $0.editInteraction($1)
        },
        // Access for others: tokens, links, encoders and restream targets.
        Route(.post, "/v1/streams/{stream}/tokens", "renewToken") { try await $0.giveToken($1) },
        Route(.post, "/v1/streams/{stream}/links", "makeLink") { try await $0.makeLink($1) },
        Route(.delete, "/v1/streams/{stream}/links", "revokeLinks") { try await $0.revokeLinks($1) },
        Route(.get, "/v1/streams/{stream}/ingest", "showIngest") { try await $0.showIngest($1) },
        Route(.post, "/v1/streams/{stream}/ingest/key", "replaceIngestKey") {
            try await $0.replaceIngestKey($1)
        },
        Route(.get, "/v1/streams/{stream}/restreams", "listRestreams") { try await $0.listRestreams($1) },
        Route(.post, "/v1/streams/{stream}/restreams", "addRestream") { try await $0.addRestream($1) },
        Route(.get, "/v1/streams/{stream}/restreams/{restream}", "showRestream") {
            try await $0.showRestream($1)
        },
        Route(.delete, "/v1/streams/{stream}/restreams/{restream}", "removeRestream") {
            try await $0.removeRestream($1)
        },
        // Following a stream, and sessions of its stage.
        .webSocket("/v1/streams/{stream}/sync", "followStream") { handler, call throws(Problem) in
            try handler.follow(call)
        },
        Route(.post, "/v1/streams/{stream}/sessions", "join") { try await $0.createSession($1, .stage) },
        Route(.get, "/v1/streams/{stream}/sessions/{session}", "joinSession") {
            try await $0.showSession($1, .stage)
        },
        Route(.patch, "/v1/streams/{stream}/sessions/{session}", "joinTrickle") {
            try await $0.updateSession($1, .stage)
        },
        Route(.get, "/v1/streams/{stream}/sessions/{session}/quality", "joinQuality") {
            try await $0.showQuality($1, .stage)
        },
        Route(.get, "/v1/streams/{stream}/sessions/{session}/gate", "joinGate") {
            try await $0.showGate($1, .stage)
        },
        Route(.post, "/v1/streams/{stream}/sessions/{session}/gate", "openJoinGate") {
            try await $0.openGate($1, .stage)
        },
        Route(.delete, "/v1/streams/{stream}/sessions/{session}", "joinEnd") {
            try await $0.endSession($1, .stage)
        },
        Route(.get, "/v1/streams/{stream}/preview.webp", "previewWebP") {
            try await $0.showPreview($1, .webP)
        },
        Route(.get, "/v1/streams/{stream}/preview.jpg", "previewJPEG") {
            try await $0.showPreview($1, .jpeg)
        },
        // The feed: list, sessions and swipes.
        Route(.get, "/v1/feed", "listFeed") { try await $0.listFeed($1) },
        .webSocket("/v1/feed/sync", "followFeed") { handler, call throws(Problem) in
            try handler.followFeed(call)
        },
        Route(.post, "/v1/feed/sessions", "enterFeed") { try await $0.createSession($1, .feed) },
        Route(.get, "/v1/feed/sessions/{session}", "feedSession") { try await $0.showSession($1, .feed) },
        Route(.patch, "/v1/feed/sessions/{session}", "feedTrickle") { try await $0.updateSession($1, .feed) },
        Route(.get, "/v1/feed/sessions/{session}/quality", "feedQuality") {
            try await $0.showQuality($1, .feed)
        },
        Route(.get, "/v1/feed/sessions/{session}/gate", "feedGate") { try await $0.showGate($1, .feed) },
        Route(.post, "/v1/feed/sessions/{session}/gate", "openFeedGate") {
            try await $0.openGate($1, .feed)
        },
        Route(.delete, "/v1/feed/sessions/{session}", "feedEnd") { try await $0.endSession($1, .feed) },
        Route(.post, "/v1/feed/sessions/{session}/peek", "peek") { try await $0.swipe($1, .peek) },
        Route(.post, "/v1/feed/sessions/{session}/focus", "focus") { try await $0.swipe($1, .focus) },
        Route(.post, "/v1/feed/sessions/{session}/release", "release") { try await $0.swipe($1, .release) },
        // Pictures, recordings and clips.
        Route(.put, "/v1/streams/{stream}/pause-picture", "choosePausePicture") {
            try await $0.choosePausePicture($1)
        },
        Route(.delete, "/v1/streams/{stream}/pause-picture", "dropPausePicture") {
            try await $0.dropPausePicture($1)
        },
        Route(.post, "/v1/streams/{stream}/recording", "startRecording") { try await $0.startRecording($1) },
        Route(.delete, "/v1/streams/{stream}/recording", "stopRecording") { try await $0.stopRecording($1) },
        Route(.post, "/v1/streams/{stream}/clips", "makeClip") { try await $0.makeClip($1) },
        Route(.get, "/v1/streams/{stream}/recordings", "listRecordings") { try await $0.listRecordings($1) },
        Route(.get, "/v1/streams/{stream}/recordings/{recording}", "showRecording") {
            try await $0.showRecording($1)
        },
        Route(
            .get, "/v1/streams/{stream}/recordings/{recording}/comments", "listRecordedComments"
        ) {
            try await $0.listRecordedComments($1)
        },
        Route(.delete, "/v1/streams/{stream}/recordings/{recording}", "removeRecording") {
            try await $0.removeRecording($1)
        },
        // Operators.
        Route(.get, "/v1/sessions", "listSessions") { try await $0.listSessions($1) },
        Route(.get, "/v1/sessions/{session}", "showSession") { try await $0.showDossier($1) },
        Route(.get, "/v1/sessions/{session}/capture", "captureSession") {
            try await $0.captureSession($1)
        },
        Route(.delete, "/v1/sessions/{session}", "endSession") { try await $0.dismissSession($1) },
        Route(.get, "/v1/admin/statistics", "showStatistics") { try await $0.showStatistics($1) },
        Route(.get, "/v1/server", "describeServer") { handler, _ in handler.settings.description },
        Route(.get, "/healthz", "health") { _, _ in .text(200, "ok") },
        Route(.get, "/readyz", "readiness") { handler, _ in await handler.readiness() },
        Route(.get, "/metrics", "metrics", for: .operators) { try await $0.showMetrics($1) },
        // Documents and the web client's pages.
        Route(.get, "/v1/openapi.json", "openAPI") {
            $0.pages.document($0.pages.openAPI, for: $1.request)
        },
        Route(.get, "/v1/asyncapi.json", "asyncAPI") {
            $0.pages.document($0.pages.asyncAPI, for: $1.request)
        },
        Route(.get, "/", "feedPage", for: .people) { $0.pages.page("index.html", for: $1.request) },
        Route(.get, "/live/{stream}", "livePage", for: .people) { try $0.streamPage($1, "live.html") },
        Route(.get, "/watch/{stream}", "watchPage", for: .people) { try $0.streamPage($1, "watch.html") },
        Route(.get, "/check", "checkPage", for: .people) { $0.pages.page("check.html", for: $1.request) },
        Route(.get, "/admin", "adminPage", for: .people) { $0.pages.page("admin.html", for: $1.request) },
        Route(.get, "/docs", "docsPage", for: .people) { $0.pages.page("docs.html", for: $1.request) },
        Route(.get, "/docs/player", "playerPage", for: .people) {
            $0.pages.page("player.html", for: $1.request)
        },
        Route(.get, "/assets/{file*}", "asset", for: .pages) {
            try $0.pages.asset($1.parameters["file"] ?? "", for: $1.request)
        },
    ]
}
