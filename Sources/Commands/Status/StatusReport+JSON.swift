import Base
import Crypto
import Status
import Storage
import Telemetry

/// The report for programs: one object, described in docs/status.md.
extension StatusReport {
    /// The number of tokens that a key seals, for each key of the ring and each other key in use.
    struct KeyCount: Equatable {
        let id: KeyID
        let tokens: Int
        /// `nil` if the ring cannot be read.
        let isInRing: Bool?
    }

    var keyCounts: [KeyCount] {
        let inRing = keyRing?.entries.map(\.id) ?? []
        let others = keysInUse.keys.filter { !inRing.contains($0) }.sorted()
        return (inRing + others).map { id in
            KeyCount(id: id, tokens: keysInUse[id] ?? 0, isInRing: keyRing.map { $0.role(of: id) != nil })
        }
    }

    var json: JSONLine {
        var line = JSONLine()
        line.field("at", at.iso8601)
        let judgement = judgement
        line.field("verdict", judgement.verdict)
        line.array("concerns") { array in
            for concern in judgement.concerns { array.object { concern.write(into: &$0) } }
        }
        line.object("grants") { grants in
            grants.field("total", statistics.grants)
            for state in GrantState.allCases { grants.field(state.rawValue, statistics.byState[state] ?? 0) }
        }
        line.field("expired", statistics.expired.count)
        line.fieldOrNull("oldest_expired_at", statistics.expired.oldest?.iso8601)
        line.field("due", statistics.due)
        line.fieldOrNull("oldest_due_at", statistics.oldestDueAt?.iso8601)
        line.field("refresh_tokens_ending", statistics.refreshTokensEnding)
        line.field("idle", statistics.idle)
        line.array("clients") { array in
            for client in clients { array.object { client.write(into: &$0) } }
        }
        line.array("workers") { array in
            for worker in workers {
                array.object { object in
                    object.field("id", worker.id)
                    object.array("keys") { keys in worker.keyIDs.forEach { keys.element($0.description) } }
                    object.field("sealing_key", worker.sealingKeyID.description)
                }
            }
        }
        line.array("keys") { array in
            for key in keyCounts {
                array.object { object in
                    object.field("id", key.id.description)
                    object.field("tokens", key.tokens)
                    object.fieldOrNull("in_ring", key.isInRing)
                }
            }
        }
        line.array("spill_files") { array in
            for file in spilledFiles ?? [] {
                array.object { object in
                    object.field("path", file.path)
                    object.field("set_aside", file.isSetAside)
                    object.field("written_at", file.writtenAt.iso8601)
                    object.fieldOrNull("results", file.results)
                }
            }
        }
        line.object("database") { object in
            object.field("path", database.path)
            object.field("bytes", database.bytes)
            object.fieldOrNull("schema", database.schema)
        }
        return line
    }
}

extension StatusReport.Client {
    fileprivate func write(into line: inout JSONLine) {
        line.field("client_id", id)
        line.field("breaker", breaker.rawValue)
        line.fieldOrNull("breaker_reason", breakerReason)
        line.millisecondsOrNull("next_probe_ms", nextProbe)
        line.field("ceiling_per_s", ceiling)
        line.field("slowed", isSlowed)
        line.millisecondsOrNull("pause_ms", pause)
        line.field("wave", isWave)
        line.fieldOrNull("last_success_at", lastSuccessAt?.iso8601)
    }
}
