// Joins a stream as a guest, says good evening, and prints what happens.
import Foundation
import RostrumClient

@main
enum Follow {
    static func main() async {
        guard CommandLine.arguments.count == 3, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: follow SERVER STREAM")
            exit(2)
        }
        // On Linux, add `sockets: try HeadlessEngine()` from RostrumClientHeadless.
        let server = RostrumServer(url)
        let talk = server.stream(CommandLine.arguments[2], tokens: .guest(name: "Zoe"))
        do {
            try await follow(talk)
        } catch {
            print("follow: \(error)")
            exit(1)
        }
    }

    static func follow(_ talk: StreamClient) async throws(RostrumError) {
        // Reconnects automatically and catches up on what was missed.
        let sync = talk.follow()
        let comment = try await talk.comment("Good evening!")
        print("we are \(comment.name ?? comment.author)")
        for await event in sync.events {
            switch event {
            case .changed(let state):
                print(state.stream?.title ?? talk.id, "on stage:", state.speakers.values.compactMap(\.name))
            case .me(let me): if me.isInvited { print("the host invites us") }
            case .comments(let comments):
                for comment in comments { print("\(comment.name ?? comment.author): \(comment.text)") }
            case .muteRequested, .message: break
            }
        }
    }
}
