import Base
import CLinux
import CSandbox
import Foundation
import Wire

/// The transcoder's side: reads what the server says and hands it to jobs, until the server is gone.
package final class TranscoderProcess {
    /// Descriptors that the server gives it.
    private static let channel: Int32 = 3
    private static let registerMemory: Int32 = 4
    /// Jobs and inputs that live at the same time.
    private static let jobLimit = 4_096
    private static let inputLimit = 16_384
    /// The exit status of a process that the kernel did not confine, and that must be.
    static let unconfinedStatus: Int32 = 3
    /// In the arguments: it runs all the same.
    static let unconfinedArgument = "unconfined"

    /// Makes a job; nil for what is not understood.
    package typealias Maker = (JobKind, [UInt8], JobEnvironment) -> (any TranscoderJob)?

    private let outlet: Outlet
    private let register: DecodingRegister
    private let pool = DecodingPool()
    private let make: Maker
    private var jobs: [JobID: any TranscoderJob] = [:]
    private var inputs: [InputID: JobID] = [:]

    private init(outlet: Outlet, register: DecodingRegister, make: @escaping Maker) {
        self.outlet = outlet
        self.make = make
        self.register = register
    }

    /// The whole life of `rostrum transcoder`.
    /// - Parameters:
    ///   - arguments: the server's process id, how far to stand behind other processes, and perhaps that confinement is
    ///     not wanted at any price.
    ///   - special: jobs that are made otherwise than usual, for tests.
    ///   - confine: what else than usual confines it, for tests.
    /// - Returns: the exit status.
    package static func run(
        _ arguments: [String], special: @escaping Maker = { _, _, _ in nil },
        confine: (Int32, Int32) -> [Confinement.Refusal] = Confinement.confine
    ) -> Int32 {
        guard (2...3).contains(arguments.count), let parent = Int32(arguments[0]),
            let niceness = Int32(arguments[1]), TranscoderSettings.nicenesses.contains(Int(niceness)),
            let register = DecodingRegister(descriptor: registerMemory)
        else { return 2 }
        let outlet = Outlet(descriptor: channel)
        outlet.send(.hello(version: TranscoderChannel.version))
        let refusals = confine(parent, niceness)
        if !refusals.isEmpty {
            outlet.log(.warning, "transcoder.unconfined", refusals.map(\.text).joined(separator: ", "))
        }
        if refusals.contains(where: \.isGrave), arguments.last != unconfinedArgument {
            return unconfinedStatus
        }
        let process = TranscoderProcess(outlet: outlet, register: register) {
            special($0, $1, $2) ?? JobFactory.make($0, $1, $2)
        }
        return process.loop() ? 0 : 1
    }

    /// - Returns: false if the server said what cannot be understood.
    private func loop() -> Bool {
        var assembler = MessageAssembler()
        var buffer = [UInt8](repeating: 0, count: TranscoderChannel.datagramLimit)
        var nextLoad = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
        while true {
            if csandbox_wait(Self.channel, 1_000) > 0 {
                let count = unsafe csandbox_receive(Self.channel, &buffer, buffer.count)
                guard count > 0 else { return true }
                var isUnderstood = true
                do {
                    try assembler.receive(buffer[..<Int(count)]) { kind, body in
                        guard let request = try? TranscoderRequest(kind, body) else {
                            return isUnderstood = false
                        }
                        if !take(request) { isUnderstood = false }
                    }
                } catch {
                    return false
                }
                guard isUnderstood else { return false }
            }
            let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
            guard now >= nextLoad else { continue }
            nextLoad = now + .seconds(1)
            var load = TranscoderLoad()
            unsafe csandbox_usage(&load.cpuNanoseconds, &load.residentBytes)
            outlet.send(.load(load))
        }
    }

    private func take(_ request: TranscoderRequest) -> Bool {
        switch request {
        case .hello(let version): return version == TranscoderChannel.version
        case .begin(let id, let kind, let body):
            let environment = JobEnvironment(id: id, outlet: outlet, register: register, pool: pool)
            guard jobs[id] == nil, jobs.count < Self.jobLimit,
                let job = make(kind, body, environment)
            else {
                outlet.send(.ended(id))
                return true
            }
            jobs[id] = job
        case .command(let id, let body): jobs[id]?.command(body)
        case .end(let id):
            jobs.removeValue(forKey: id)?.end()
            inputs = inputs.filter { $0.value != id }
        case .open(let input, let id, let source, let codec):
            guard let job = jobs[id], inputs[input] == nil, inputs.count < Self.inputLimit else {
                return true
            }
            inputs[input] = id
            job.open(input, from: source, codec)
        case .packet(let input, let packet):
            guard let id = inputs[input] else { return true }
            jobs[id]?.take(packet, of: input)
        case .close(let input):
            guard let id = inputs.removeValue(forKey: input) else { return true }
            jobs[id]?.close(input)
        }
        return true
    }
}
