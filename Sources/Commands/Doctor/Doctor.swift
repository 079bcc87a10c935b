import Base
import Crypto
import Status
import Storage
import Worker

extension Command {
    /// `doctor`: checks the installation.
    static let runDoctor = Command(
        words: ["doctor"],
        summary: "check the set-up and say what to fix",
        discussion: """
            Checks the configuration, the modes and owners of files, the key ring, the secrets and the services of the \
            listeners, their addresses, the database and its spill files, the clock, the client ids and the endpoints, \
            and gives advice for each fault. It changes nothing. It refuses the settings that the daemon refuses. It \
            asks the token endpoint with a made-up token, which shows if the endpoint knows the client id. If root runs \
            it, it checks as the owner of the database or of the key ring.
            """,
        options: [.jsonObject],
        settings: Setting.Name.allCases.filter { $0 != .runOnce },
        examples: [
            (
                "sudo -u refresh-worker refresh-worker doctor --config /etc/refresh-worker/refresh-worker.conf",
                "as the service's user, with the service's configuration"
            ),
            (
                """
                refresh-worker doctor --json | jq -r '.checks[] | select(.result != "ok") | .advice // .text'
                """,
                "only what to do"
            ),
        ],
        exitCodes: [.success, .usage, .googleUnreachable, .internalFailure, .inputOutput, .configuration]
    ) { _, context in
        let isPlain = !(context.inputs.environment["NO_COLOR"] ?? "").isEmpty  // https://no-color.org
        let isColoured = Output.standard.isTerminal && !isPlain
        let diagnoses = try await Doctor(context: context).examine { diagnosis in
            if !context.printsJSON { Output.standard.line(diagnosis.line(isColoured: isColoured)) }
        }
        context.answer(Diagnosis.summary(of: diagnoses)) { Diagnosis.write(diagnoses, to: &$0) }
        return Diagnosis.exitCode(of: diagnoses)
    }
}

/// Checks everything that the worker depends on, and changes nothing.
struct Doctor: Sendable {
    let context: CommandContext

    /// Runs the checks one after another and reports each result immediately, because some take time.
    func examine(report: (Diagnosis) -> Void) async throws -> [Diagnosis] {
        var all: [Diagnosis] = []
        func add(_ diagnoses: [Diagnosis]) {
            diagnoses.forEach(report)
            all += diagnoses
        }
        add(becomeServiceUser())
        add(try await BlockingCallQueue.files.run { fileDiagnoses() + servingDiagnoses() })
        add(try await databaseDiagnoses())
        add(try await BlockingCallQueue.files.run { spillDiagnoses() })
        add(try await clockDiagnoses())
        add(await endpointDiagnoses())
        return all
    }
}

/// The check for spill files.
extension Doctor {
    func spillDiagnoses() -> [Diagnosis] {
        let subject = "spill files"
        let location = context.spillLocation(of: context.configuration.database)
        let files: [SpilledFile]
        do throws(SystemCallError) {
            files = try SpilledFile.list(in: location)
        } catch {
            let advice = "let the worker's user read the folder, which may hold results that were not stored"
            return [.warning(subject, "\(error)", advice: advice)]
        }
        guard !files.isEmpty else { return [.ok(subject, "none in \(location.folder)")] }
        return files.map { .warning(subject, $0.sentence(at: context.time.now)) }
    }
}

/// The rules of the daemon's start, and the user that the checks run as.
extension Doctor {
    /// One fault for each rule about settings that the daemon refuses to start with.
    ///
    /// The daemon checks the same function; `DoctorAgreementTests` runs a table of configurations through both.
    var startDiagnoses: [Diagnosis] {
        do throws(ConfigurationError) {
            try context.configuration.checkServing(environment: context.inputs.environment)
            return []
        } catch {
            return error.problems.map { .fault("settings", "\($0.origin) \($0.message)") }
        }
    }

    /// Continues as the service's user if root runs the doctor, because root may read and write everything.
    ///
    /// Root would find no file unreadable, and would take the key ring of the service for a foreign one.
    func becomeServiceUser() -> [Diagnosis] {
        guard ServiceUser.isRoot else { return [] }
        let subject = "user"
        do throws(SystemCallError) {
            guard let user = try serviceUser() else {
                if try ServiceUser(name: "refresh-worker") != nil {
                    let owned = "root owns the database or the key ring, but the service runs as refresh-worker"
                    return [.warning(subject, owned, advice: "give it the file, or the key ring by LoadCredential=")]
                }
                let advice =
                    "if the service has a user of its own, run: runuser -u refresh-worker -- refresh-worker doctor"
                return [
                    .ok(
                        subject,
                        "root, because no other user of this machine owns the database or the key ring; \(advice)"
                    )
                ]
            }
            try user.become()
            let line = "runuser -u \(user.name) -- refresh-worker …"
            return [.ok(subject, "root runs the doctor; it checks as \(user.name); run other commands so: \(line)")]
        } catch {
            return [.warning(subject, "root cannot check as the service's user: \(error)")]
        }
    }

    /// The owner of the database or of the key ring; before they exist, the user that the packages create.
    private func serviceUser() throws(SystemCallError) -> ServiceUser? {
        for path in [context.configuration.database.file, context.configuration.keyFile].compactMap(\.self) {
            guard let owner = try FileStatus.of(path)?.owner else { continue }
            return owner == 0 ? nil : try ServiceUser(id: owner)
        }
        return try ServiceUser(name: "refresh-worker")
    }
}

/// The findings of the status, as warnings.
extension Doctor {
    /// Looks for findings in the stored state, as `status` does.
    ///
    /// Findings are warnings, because the daemon starts in spite of them.
    func statusDiagnoses(of store: any Store) async throws -> [Diagnosis] {
        Self.check(try await context.statusSnapshot(from: store, includesSlowParts: false).findings)
    }

    static func check(_ findings: [Finding]) -> [Diagnosis] {
        let subject = "status"
        let shown = findings.filter { !$0.isAdvisory && !$0.isCheckedByDoctor }
        guard !shown.isEmpty else { return [.ok(subject, "no concern")] }
        return shown.map { .warning(subject, "\($0.text) (\($0.runbook))") }
    }
}
