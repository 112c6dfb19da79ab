/// Parses the command line into options, or into a text of help.
enum CommandLineParser {
    enum Outcome: Equatable {
        case run(Options)
        /// Text for standard output.
        case help(String)
    }

    /// - Parameters:
    ///   - arguments: without the program's name.
    ///   - environment: `SFU_BENCH_TOKEN` and `SFU_BENCH_SECRET` keep secrets out of the list of processes.
    /// - Throws: `UsageError` for an unknown command or option, a bad value, or options that do not fit together.
    static func parse(
        _ arguments: [String], environment: [String: String] = [:]
    ) throws(UsageError) -> Outcome {
        guard let first = arguments.first else {
            throw UsageError("no command given; commands are " + commandNames)
        }
        if isHelp(first) || first == "help" { return .help(HelpText.overview) }
        guard let command = Command(rawValue: first) else {
            throw UsageError("unknown command \"\(first)\"; commands are " + commandNames)
        }
        var options = Options(command)
        options.target.token = environment["SFU_BENCH_TOKEN"]
        options.target.secret = environment["SFU_BENCH_SECRET"]
        var rest = arguments.dropFirst()
        var hasServer = false
        /// Names of the options that were given, for a check against the protocol once that is known.
        var names: [String] = []
        while let argument = rest.popFirst() {
            if isHelp(argument) { return .help(HelpText.text(for: command)) }
            guard argument.hasPrefix("-") else {
                guard !hasServer else { throw UsageError("more than one server given: \"\(argument)\"") }
                options.server = try ServerAddress(parsing: argument)
                hasServer = true
                continue
            }
            names.append(String(argument.prefix { $0 != "=" }))
            try apply(argument, &rest, to: &options)
        }
        // Options win, so that these are checked last.
        for (name, value) in [
            ("SFU_BENCH_TOKEN", options.target.token), ("SFU_BENCH_SECRET", options.target.secret),
        ] where value?.isEmpty == true {
            throw UsageError("\(name) is empty; set a value, or unset it")
        }
        try options.streamProtocol?.check(names)
        try check(options)
        return .run(options)
    }

    /// As a list for error messages.
    private static let commandNames = Command.listed.map { $0.rawValue }.joined(separator: ", ")

    private static func isHelp(_ argument: String) -> Bool { argument == "--help" || argument == "-h" }

    /// Applies one option, written as `--name value` or `--name=value`; consumes its value from `rest`.
    private static func apply(
        _ argument: String, _ rest: inout ArraySlice<String>, to options: inout Options
    ) throws(UsageError) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts.first ?? "")
        guard let definition = OptionDefinition.table.first(where: { $0.name == name }) else {
            throw UsageError("unknown option \(name)\(suggestion(for: name, options.command))")
        }
        guard definition.commands.contains(options.command) else {
            throw UsageError("\(name) does not apply to \(options.command.rawValue)")
        }
        guard definition.placeholder != nil else {
            guard parts.count == 1 else { throw UsageError("\(name) takes no value") }
            return try definition.apply(&options, "")
        }
        guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
            throw UsageError("\(name) needs a value: \(name) \(definition.placeholder ?? "")")
        }
        try definition.apply(&options, value)
    }

    /// An option with the same first letters that the command has, as a question; empty if there is none.
    private static func suggestion(for name: String, _ command: Command) -> String {
        let known = OptionDefinition.table.filter { $0.commands.contains(command) }.map { $0.name }
        let stem = name.drop { $0 == "-" }.prefix(4)
        guard !stem.isEmpty, let close = known.first(where: { $0.dropFirst(2).hasPrefix(stem) }) else {
            return ""
        }
        return " (did you mean \(close)?)"
    }

    /// Checks what only all options together show: where the load goes, and whether there is anything to do.
    ///
    /// Hosts come first: load on a server that the user does not own must be impossible by accident.
    private static func check(_ options: Options) throws(UsageError) {
        let target = options.target
        var hosts: [String] = []
        let isFilm = options.streamProtocol == .rtmp || options.streamProtocol == .srt
        if isFilm || options.streamProtocol == .hls {
            hosts += try options.protocolHosts()
        } else if options.command.publishes, target.liveStreams.isEmpty {
            hosts.append(try options.server.host(of: target.whip))
        }
        if options.command == .sync || options.command == .interact {
            hosts.append(try options.server.host(of: "/v1/streams"))
        } else if options.command == .feed {
            hosts.append(try options.server.host(of: target.feed))
        } else if options.command.plays, options.streamProtocol != .hls {
            hosts.append(try options.server.host(of: target.whep))
        }
        if options.command == .restart { hosts.append(try options.server.host(of: options.restart.ready)) }
        if !target.isOwned, let host = hosts.first(where: { !ServerAddress.isLoopback(host: $0) }) {
            throw UsageError(
                "\(host) is not this machine, and load can hurt; if the server is yours, add --i-own-this-server"
            )
        }
        if target.keyID != nil, target.secret == nil { throw UsageError("--key-id needs --secret too") }
        if options.command == .interact { try options.interacting.check(viewers: options.audience.viewers) }
        if options.command == .feed, options.media.bitrate == 0 {
            throw UsageError("a feed needs video: --bitrate must not be 0")
        }
        if options.command.publishes, options.media.bitrate == 0, options.media.audioBitrate == 0 {
            throw UsageError("nothing to publish: --bitrate and --audio-bitrate are both 0")
        }
        if options.media.layers > 1, options.media.videoFile != nil {
            throw UsageError("--layers needs synthetic video: leave out --file")
        }
        if isFilm, options.media.bitrate == 0 {
            throw UsageError("RTMP and SRT need video: --bitrate must not be 0")
        }
        let audience = options.audience
        // The largest number of viewers at any time of the run.
        let most = max(audience.viewers, audience.ramp == nil ? 0 : audience.rampMaximum) + audience.playing
        let viewers = options.command == .feed ? most : most * target.streams
        guard viewers <= 50_000 else {
            throw UsageError("\(viewers) viewers are too many; the maximum is 50000")
        }
    }
}
