/// One thing that can be configured, under one name as a flag, as an environment variable and in the file.
struct Option: Sendable {
    /// How many values an option has, and of which form.
    enum Kind: Sendable, Equatable {
        /// One value.
        case text
        /// Present or absent as a flag; `true` or `false` in the environment and in the file.
        case toggle
        /// Any number of values.
        case list
    }

    /// As in `--name`, `ROSTRUM_NAME` and `name = …`.
    let name: String
    let kind: Kind
    /// Represents the value in the help; empty for a toggle.
    let placeholder: String
    /// Lines of the help, already wrapped.
    let help: [String]

    init(_ name: String, _ kind: Kind, _ placeholder: String = "", _ help: String...) {
        self.name = name
        self.kind = kind
        self.placeholder = placeholder
        self.help = help
    }

    /// The environment variable: `ROSTRUM_PUBLIC_ADDRESS` for `public-address`.
    var variable: String {
        "ROSTRUM_" + name.uppercased().replacing("-", with: "_")
    }

    /// All options of `rostrum serve`, in the order of the help.
    static let all: [Option] = [
        Option(
            "http", .text, "ADDRESS:PORT",
            "Address to serve HTTP on; 0.0.0.0:8080 lets other machines connect. --tcp, --turn-tls and",
            "--turn-tcp may name the same port: the server tells connections apart by their first bytes.",
            "Default: 127.0.0.1:8080."),
        Option(
            "admin", .text, "ADDRESS:PORT",
            "Address to serve /metrics, /healthz and /readyz on without a token. (On --http, /metrics",
            "needs an admin's token, except from this machine.) Default: none."),
        Option(
            "trusted-proxy", .list, "CIDR[,CIDR]",
            "Reverse proxies whose X-Forwarded-For header is trusted, such as 127.0.0.1 or 10.0.0.0/8;",
            "limits then apply to the address that it names. Default: none."),
        Option(
            "udp", .text, "ADDRESS:PORT",
            "Address to receive media on, for all workers. ADDRESS:FIRST-LAST gives each worker a port of",
            "its own, which saves copying when many publish. Firefox cannot connect to a loopback address:",
            "with 127.0.0.1, only Chromium plays. Default: 0.0.0.0:7000."),
        Option(
            "tcp", .text, "ADDRESS:PORT|off",
            "Address to receive media on from clients whose network blocks UDP; one port for all workers,",
            "which may be that of --http. Default: address and first port of --udp."),
        Option(
            "rtmp", .text, "ADDRESS:PORT|off",
            "Address where encoders publish over RTMP, such as 0.0.0.0:1935. Keys and media are not",
            "encrypted. Default: off."),
        Option(
            "rtmps", .text, "ADDRESS:PORT|off",
            "Address where encoders publish over RTMPS, such as 0.0.0.0:1936. Needs --tls-certificate.",
            "Default: off."),
        Option(
            "srt", .text, "ADDRESS:PORT|off",
            "Address where encoders publish over SRT, such as 0.0.0.0:9710 (UDP). Default: off."),
        Option(
            "srt-passphrase", .text, "SECRET",
            "Passphrase that SRT encoders need besides their key, 10 to 79 bytes. It encrypts media, but",
            "not keys. Better set in ROSTRUM_SRT_PASSPHRASE or in the file: other users can see flags.",
            "Default: none."),
        Option(
            "srt-latency", .text, "MILLISECONDS",
            "Time for lost SRT packets to be sent again, 20 to 8000; encoders may ask for more. Four times",
            "the round-trip time works well. Default: 200."),
        Option(
            "turn-tls", .text, "ADDRESS:PORT|off",
            "Address of a TURN relay over TLS to this server's own sessions, for networks that allow only",
            "HTTPS: best on port 443, which may be that of --http. Needs --tls-certificate. Default: off."),
        Option(
            "turn-tcp", .text, "ADDRESS:PORT|off",
            "The same over TCP, for clients that do not accept the certificate. Default: off."),
        Option(
            "turn-udp", .text, "ADDRESS:PORT|off",
            "The same over UDP, for networks that allow a single UDP port, such as 3478. Default: off."),
        Option(
            "public-address", .list, "IP[,IP]",
            "Addresses at which clients reach this machine when it is behind a NAT; advertised before the",
            "machine's own. Default: none."),
        Option("workers", .text, "N", "Threads that carry media, 1 to 256. Default: one per processor."),
        Option(
            "max-sessions", .text, "N",
            "Maximum number of peer connections; more are refused. Default: 20000."),
        Option(
            "max-sessions-per-address", .text, "N",
            "Maximum number of peer connections without a token from one address or IPv6 /64; a /56 or a",
            "/48 may have four times as many. Loopback has no limit. Default: 500."),
        Option(
            "max-compositions", .text, "N",
            "Maximum number of programmes to compose at once; only those with viewers count. Viewers of",
            "further ones see the active speaker instead. Each takes a few tenths of a processor. Default:",
            "two per processor."),
        Option(
            "max-renditions", .text, "N",
            "Maximum number of smaller pictures to encode at once for viewers with slow connections, where",
            "a publisher sends only one size; beyond that, such viewers get audio only. Each takes a",
            "quarter of a processor. 0 for none. Default: one per processor."),
        Option(
            "max-conversions", .text, "N",
            "Maximum number of RTMP and SRT publishers whose video is encoded again at once, because",
            "browsers do not play their H.264, for example with B-frames. Further ones are refused. Each",
            "takes up to one processor. 0 for none. Default: one per two processors."),
        Option(
            "max-hls", .text, "N",
            "Maximum number of streams to make HLS of at once. HLS is made while someone requests",
            "/hls/{stream}/index.m3u8, such as viewers whom WebRTC does not reach; requests for further",
            "streams are refused. Each takes a quarter of a processor, less where the publisher's own",
            "H.264 can be passed on, and as much again while a viewer needs the smaller picture. 0 for",
            "none. Default: one per two processors."),
        Option(
            "hls-part", .text, "MILLISECONDS",
            "Length of HLS parts: 200, 400, 500 or 1000. Viewers are a little more than three parts",
            "behind, and make one request per part. Default: 500."),
        Option(
            "max-dvr", .text, "SECONDS",
            "Maximum time that hosts can keep on disk for HLS viewers to go back to. Needs --max-hls and",
            "--data; such a stream is packaged for as long as it is live. One hour at 2.5 Mbit/s takes 1.2",
            "GB. 0 for none. Default: 7200, which is also the most allowed."),
        Option(
            "max-restreams", .text, "N",
            "Maximum number of RTMP and RTMPS targets, named by hosts, to send live programmes to at once;",
            "further ones wait. Each stream that is sent on takes a quarter of a processor or less,",
            "however many targets it has, with or without HLS. Default: 0, for none."),
        Option(
            "max-clips", .text, "N",
            "Maximum number of live streams to keep the last two minutes of in memory, so that clips can",
            "be made of them. No clips can be made of further ones. Each takes the size of those two",
            "minutes, 64 MB at most. 0 for none. Default: 4 where recordings are kept."),
        Option(
            "restream-networks", .text, "public|all",
            "Addresses that programmes may be sent to. With all, private ones and this machine's own are",
            "included, so hosts can make it connect to what only it can reach. Default: public."),
        Option(
            "data", .text, "DIRECTORY",
            "Directory for recordings and all else that must survive a restart. Default: data; with --dev",
            "none: each restart begins empty, and nothing is recorded."),
        Option(
            "keep-streams", .text, "30d|12h|forever",
            "How long to keep streams after they end, with all that belongs to them: bans, comments,",
            "gifts. A stream with recordings is kept until those are gone. Default: forever."),
        Option(
            "keep-recordings", .text, "30d|12h|forever",
            "How long to keep recordings after they end. One that is being played is kept up to a day",
            "longer. Default: forever."),
        Option(
            "keep-clips", .text, "30d|12h|forever",
            "How long to keep clips after they are made. One that is being played is kept up to a day",
            "longer. Default: as long as recordings."),
        Option(
            "keep-comments", .text, "30d|12h|forever",
            "How long to keep comments after they are made or their stream ends, whichever comes first;",
            "the stream itself is kept. Default: forever."),
        Option(
            "webhook", .list, "URL[,URL]",
            "URLs to post stream and participant events to, up to 10. Needs --webhook-secret. Default:",
            "none."),
        Option(
            "review-webhook", .text, "URL",
            "URL to ask about each comment before anyone sees it: 200 to 299 within 200 ms shows the",
            "comment, 403 rejects it. Needs --webhook-secret. Default: none."),
        Option(
            "review-default", .text, "allow|deny",
            "What to do with a comment when the review webhook gives neither answer in time. Default:",
            "allow."),
        Option(
            "webhook-secret", .text, "SECRET",
            "Secret that signs webhooks, at least 16 bytes. Better set in ROSTRUM_WEBHOOK_SECRET or in the",
            "file: other users can see flags."),
        Option("key-id", .text, "ID", "Name of the key that signs tokens; their iss claim."),
        Option(
            "secret", .text, "SECRET",
            "Key that signs tokens, at least 32 bytes. Better set in ROSTRUM_SECRET or in the file: other",
            "users can see flags."),
        Option(
            "secret-file", .text, "FILE",
            "File with the key in its first line; --secret overrides it. Further lines are earlier keys:",
            "tokens signed with them are still accepted. To change the key, put the new one above the old",
            "one and reload; remove the old one when its tokens have expired."),
        Option(
            "viewers", .text, "public|token",
            "Whether viewers need a token. Default: token; public with --dev."),
        Option(
            "feed-viewers-weight", .text, "N",
            "Points in the feed's order for each doubling of a stream's viewers, -1000 to 1000. Default:",
            "10."),
        Option(
            "feed-age-weight", .text, "N",
            "Points that a stream loses for each hour since its start, -1000 to 1000. Default: 5."),
        Option(
            "feed-boost-weight", .text, "N",
            "Points for each step of boost that an operator gives a stream, -1000 to 1000. Default: 10."),
        Option(
            "tls-certificate", .text, "FILE",
            "PEM file with the certificate and its intermediate certificates."),
        Option("tls-key", .text, "FILE", "PEM file with the certificate's private key."),
        Option(
            "ice-server", .list, "URL[,USER,PASSWORD]",
            "STUN or TURN server for clients to use, such as",
            "turn:turn.example.org:3478?transport=udp,ann,secret. May be repeated. One with a password is",
            "given only to clients with a token."),
        Option(
            "ice-server-secret", .text, "SECRET",
            "Secret shared with TURN servers that have no USER,PASSWORD (coturn's static-auth-secret):",
            "each client gets a password for 12 hours. Better set in ROSTRUM_ICE_SERVER_SECRET or in the",
            "file: other users can see flags."),
        Option(
            "srtp-engine", .text, "openssl|libsrtp2",
            "Library that encrypts media. Default: openssl, which is faster."),
        Option(
            "transcoder", .text, "on|off",
            "Whether to decode pictures and sound, in a separate process, for previews, compositions,",
            "pause pictures and recordings. Default: on."),
        Option(
            "transcoder-confinement", .text, "on|off",
            "Whether to use that process only if the kernel confines it (Landlock, Linux 5.13 or later,",
            "and seccomp), so that a malicious picture gains nothing. Default: on."),
        Option(
            "transcoder-nice", .text, "N",
            "Niceness of that process, 0 to 19: how far it gives way to others when processors are busy.",
            "Default: 10; use 0 on a machine that composes more than it forwards."),
        Option(
            "dev", .toggle, "",
            "Try Rostrum out on one machine: makes a key at the start, and gives anyone on this machine",
            "tokens from POST /v1/tokens. Do not use behind a proxy: requests through a proxy that is not",
            "trusted and adds no forwarding header count as coming from this machine."),
        Option(
            "log-level", .text, "LEVEL",
            "Lowest level to log: debug, info, warning or error. Default: info."),
        Option("log-format", .text, "text|json", "Format of log lines. Default: text."),
        Option(
            "config", .text, "FILE",
            "TOML file to read more options from. Default: /etc/rostrum/rostrum.toml if it exists; none",
            "with --dev."),
    ]

    /// - Returns: nil if there is no such option.
    static func named(_ name: some StringProtocol) -> Option? {
        all.first { $0.name == name }
    }
}

/// The texts that `--help` prints.
enum Help {
    /// The commands; also printed if the program is started without one.
    static let usage = """
        usage: rostrum serve [OPTION...]      run the server
               rostrum serve --check-config   check the configuration and print it, without running
               rostrum config show [OPTION...]
                                              print each option's value and where it comes from
               rostrum doctor [--json] [OPTION...]
                                              check all that a server needs on this machine
               rostrum backup DIRECTORY [OPTION...]
                                              back up the server's data while it runs
               rostrum restore DIRECTORY [OPTION...]
                                              restore a backup where there is no data yet
               rostrum token --role ROLE --stream NAME [OPTION...]
                                              sign a token, or make a link with one
               rostrum --help                 explain all options
               rostrum --version              print the versions of the program and its libraries
        """

    /// The help of `rostrum serve`, with every option and its variable.
    static var full: String {
        var text = """
            Rostrum is a server for interactive live streaming over WebRTC.

            \(usage)

            To try it out:           rostrum serve --dev
            then open in a browser:  http://localhost:8080
            To serve others:         rostrum serve … with ROSTRUM_KEY_ID and ROSTRUM_SECRET set, and with the same two
                                     rostrum token --role host --stream talk --link https://example.org

            Each option can be a flag, an environment variable, or a line `name = value` in the TOML file given with
            --config: text in quotes; numbers, true and false without; lists as ["one", "two"]. Flags override the
            environment, which overrides the file.

            """
        for option in Option.all { text += option.explanation + "        Environment: \(option.variable)\n" }
        return text
            + """

            Once the server is ready, it prints one line, `ready http=ADDRESS:PORT udp=ADDRESS:PORT tcp=ADDRESS:PORT`,
            to standard output, followed by rtmp=, rtmps=, srt=, turn-tls=, turn-tcp= and turn-udp=ADDRESS:PORT for
            those that are on. The log goes to standard error. SIGTERM and SIGINT shut the server down cleanly, with
            exit status 0. If it cannot start, the status is 2 for an invalid configuration and 1 for other reasons.

            SIGHUP reloads the configuration: new connections get the certificate that is in its file now, new tokens
            are signed with the current key, and the five limits --max-sessions, --max-sessions-per-address,
            --max-compositions, --max-renditions and --max-conversions apply to whatever begins from then on. All
            other options need a restart, and so do TURN passwords, which are made from the key at the start.

            `rostrum token`, `doctor`, `backup` and `restore` have options of their own: see rostrum token --help.

            `rostrum transcoder` is the process that decodes and encodes pictures and sound. The server starts it
            when needed, and restarts it if it dies; it is of no use on its own.

            """
    }

    static var doctor: String {
        """
        usage: rostrum doctor [--json] [OPTION...]

        Checks the configuration, the secret, the certificate, ports, addresses, the clock, socket buffers, the limit
        on open files, the disk, codecs and the transcoder's confinement, with the options of rostrum serve. Prints
        a line for each: ok, warn or fail, what was found, and what to do about it. It changes nothing, and can run
        while the server does, best as the server's user: sudo -u rostrum rostrum doctor.

          --json
                Print one JSON object instead: {"ok":…,"checks":[{"subject":…,"verdict":…,"text":…,"remedy":…}]}.

        Exit status: 0 if no check failed, 1 if one did.

        """
    }

    static var backup: String {
        """
        usage: rostrum backup DIRECTORY [OPTION...]

        Copies the server's data into a new directory that only its owner can read: streams with all that belongs to
        them, pause pictures, and the files that hold the configuration and the key that signs tokens. The server can
        keep running: all that it confirmed before the backup began is included, and each later commit is included
        whole or not at all. Certificates are not included, and recordings only with --recordings.

          --recordings
                Copy recordings too; of one in progress, what there is so far.

          --data DIRECTORY, --config FILE, --secret-file FILE
                Where the server has its data and settings, as for rostrum serve.

        manifest.json is written last, and lists each file with its SHA-256 digest. A backup that was interrupted
        is left as DIRECTORY.partial; the next one to the same place starts over. Run this as the server's user or
        as root. Exit status: 0 if the backup is safely on disk, 1 if there is none, with the reason on standard
        error, and 2 if the command line is invalid.

        """
    }

    static var restore: String {
        """
        usage: rostrum restore DIRECTORY [OPTION...]

        Restores a backup made by rostrum backup to the server's data directory, after checking that every file is
        unchanged and the store is intact. Nothing is overwritten: it refuses where there is data already, where a
        server is running, and where the backup comes from a newer version. If it is interrupted, run it again; no
        server uses a half-restored directory. Settings and secrets stay in the backup for you to compare. Webhooks
        that were waiting at the time of the backup are sent again.

          --check
                Only check that the backup is complete and that this version can restore it.

          --data DIRECTORY, --config FILE
                Where the server has its data, as for rostrum serve. When run as root, restored files get the owner
                of that directory.

        Exit status: 0 on success, 1 if nothing was restored, with the reason on standard error, and 2 if the
        command line is invalid.

        """
    }

    static var token: String {
        var text = """
            usage: rostrum token --role ROLE --stream NAME [OPTION...]

            Prints a token signed with the server's key: the one given by --key-id and --secret, by the environment,
            or by the file that --config names. With --link, prints the link of a page instead:

            rostrum token --role host --stream talk --name Ann --link https://example.org

            """
        for option in TokenCommand.options { text += option.explanation }
        return text + """

              --key-id ID, --secret SECRET, --config FILE
                    Key to sign with, as for rostrum serve.

            Exit status: 2 if the command line or the configuration is invalid, with the reason on standard error.

            """
    }
}

extension Option {
    /// The option's entry in the help: its flag, then its description.
    fileprivate var explanation: String {
        let flag = "--\(name)" + (placeholder.isEmpty ? "" : " \(placeholder)")
        return "\n  \(flag)\n" + help.map { "        \($0)\n" }.joined()
    }
}
