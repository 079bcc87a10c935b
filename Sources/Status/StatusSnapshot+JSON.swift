package import Base
import Crypto
import Scheduler
import Storage

/// The snapshot for programs: one object, described in docs/status.md.
extension StatusSnapshot {
    package var json: JSONLine {
        var line = JSONLine()
        line.field("at", at.iso8601)
        findings.write(into: &line)
        let counted = countedGrants
        line.object("grants") { object in
            object.fieldOrNull("total", counted?.grants)
            for state in GrantState.allCases {
                object.fieldOrNull(state.rawValue, counted.map { $0.byState[state] ?? 0 })
            }
        }
        line.object("retrying_reasons") { object in
            for (reason, count) in grants.retryingByReason { object.field(reason.rawValue, count) }
        }
        line.fieldOrNull("expired", counted?.expired.count)
        line.fieldOrNull("oldest_expired_at", grants.expired.oldest?.iso8601)
        line.fieldOrNull("due", counted?.due)
        line.fieldOrNull("oldest_due_at", grants.oldestDueAt?.iso8601)
        line.fieldOrNull("refresh_tokens_ending", counted?.refreshTokensEnding)
        line.fieldOrNull("idle", counted?.idle)
        line.objects("clients", clients) { client, object in
            object.field("client_id", client.id)
            object.field("breaker", client.breaker.name)
            object.fieldOrNull("breaker_reason", client.breakerReason)
            object.millisecondsOrNull("next_probe_ms", client.nextProbe)
            object.field("ceiling_per_s", client.ceiling)
            object.field("slowed", client.isSlowed)
            object.millisecondsOrNull("pause_ms", client.pause)
            object.field("wave", client.isWave)
            object.fieldOrNull("last_success_at", client.lastSuccessAt?.iso8601)
            object.objects("failures", client.failures) { failure, object in
                object.field("code", failure.code)
                object.fieldOrNull("status", failure.status)
                object.field("since", failure.since.iso8601)
                object.field("last_at", failure.lastAt.iso8601)
                object.field("count", failure.count)
            }
        }
        line.objects("workers", workers ?? []) { worker, object in
            object.field("id", worker.id)
            object.strings("keys", worker.keyIDs.map(\.description))
            object.field("sealing_key", worker.sealingKeyID.description)
        }
        line.objects("keys", keyCounts) { key, object in
            object.field("id", key.id.description)
            object.fieldOrNull("tokens", key.tokens)
            object.fieldOrNull("in_ring", key.isInRing)
        }
        line.objects("spill_files", spilledFiles ?? []) { file, object in
            object.field("path", file.path)
            object.field("set_aside", file.isSetAside)
            object.field("written_at", file.writtenAt.iso8601)
            object.fieldOrNull("results", file.results)
        }
        line.object("database") { object in
            object.field("path", database)
            object.field("bytes", databaseBytes)
            object.fieldOrNull("schema", schema)
        }
        return line
    }
}
