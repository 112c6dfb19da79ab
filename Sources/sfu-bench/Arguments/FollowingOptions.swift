/// The options of `sync`: how many clients follow a stream, and which commands they see.
extension OptionDefinition {
    static let followingOptions = [
        OptionDefinition(
            "--clients", "N", .audience, for: [.sync],
            "number of WebSockets that follow the stream (default 1000)"
        ) { options, text throws(UsageError) in
            options.following.clients = try OptionValue.count(text, "--clients", 1...50_000)
        },
        OptionDefinition(
            "--sample", "N", .audience, for: [.sync],
            "number of these that are read by a separate thread, so that their times do not include the load of "
                + "the others on this tool (default 20)"
        ) { options, text throws(UsageError) in
            options.following.sample = try OptionValue.count(text, "--sample", 0...1_000)
        },
        OptionDefinition(
            "--commands", "N", .audience, for: [.sync],
            "number of durable commands, one after the other: raise a hand, lower it again (default 100)"
        ) { options, text throws(UsageError) in
            options.following.commands = try OptionValue.count(text, "--commands", 0...100_000)
        },
        OptionDefinition(
            "--pause", "TIME", .timing, for: [.sync],
            "time from the last client's change to the next command (default 50ms; with more than 200 clients, "
                + "where the server batches faster changes, 120ms or more)"
        ) { options, text throws(UsageError) in
            options.following.pause = try OptionValue.seconds(text, "--pause", 0...60)
        },
        OptionDefinition(
            "--hold", "TIME", .timing, for: [.sync],
            "time after the commands in which no client may be lost (default 0)"
        ) { options, text throws(UsageError) in
            options.following.hold = try OptionValue.seconds(text, "--hold", 0...86_400)
        },
    ]
}
