"""The cluster as a whole: its settings, server tags, rebalances, and the health of replicas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fluss.admin.requests import AdminRequests
from fluss.errors import InvalidValueError
from fluss.model.cluster.configs import AlterConfig, ConfigEntry, ConfigSource
from fluss.model.cluster.rebalance import (
    GoalType,
    RebalanceProgress,
    RebalanceResultForBucket,
    RebalanceStatus,
    ServerTag,
)
from fluss.model.cluster.replica_health import ClusterHealth, ClusterHealthStatus
from fluss.model.paths import TableBucket
from fluss.wire import messages
from fluss.wire.table_paths import read_bucket


class ClusterAdmin(AdminRequests):
    """Administers what belongs to no single table."""

    # --- settings -----------------------------------------------------------------------------

    async def describe_cluster_configs(self) -> list[ConfigEntry]:
        """The settings of the cluster that were set, sorted by name; secrets are hidden."""
        answer = await self._cluster.ask_coordinator(
            messages.DescribeClusterConfigsRequest(), messages.DescribeClusterConfigsResponse
        )
        return sorted(map(_config_entry, answer.configs), key=lambda each: each.key)

    async def alter_cluster_configs(self, configs: Iterable[AlterConfig]) -> None:
        """Change settings while the cluster runs; all of them, or none.

        Raises:
            FlussError: One of them cannot be changed while the cluster runs, or to this value.
        """
        request = messages.AlterClusterConfigsRequest()
        for config in configs:
            request.alter_configs.add(
                config_key=config.key, config_value=config.value, op_type=config.op_type.code
            )
        if request.alter_configs:
            await self._change(request)

    # --- tags ---------------------------------------------------------------------------------

    async def add_server_tag(self, server_ids: Iterable[int], server_tag: ServerTag | str) -> None:
        """Mark tablet servers, so that the next rebalance empties them.

        Raises:
            ServerError: The cluster has no such server, or it has another tag.
        """
        ids, tag = list(server_ids), ServerTag.of(server_tag)
        await self._change(messages.AddServerTagRequest(server_ids=ids, server_tag=tag.code))

    async def remove_server_tag(
        self, server_ids: Iterable[int], server_tag: ServerTag | str
    ) -> None:
        """Take a tag from tablet servers; one without a tag is no error.

        Raises:
            ServerError: The cluster has no such server, or it has another tag.
        """
        ids, tag = list(server_ids), ServerTag.of(server_tag)
        await self._change(messages.RemoveServerTagRequest(server_ids=ids, server_tag=tag.code))

    async def add_server_tag_by_rack(
        self, racks: Iterable[str], server_tag: ServerTag | str
    ) -> None:
        """Mark the tablet servers that are in these racks now; needs Fluss 1.0.

        Raises:
            UnsupportedVersionError: The coordinator is older.
        """
        request = messages.AddServerTagByRackRequest(
            racks=_checked_racks(racks), server_tag=ServerTag.of(server_tag).code
        )
        await self._change(request)

    async def remove_server_tag_by_rack(
        self, racks: Iterable[str], server_tag: ServerTag | str
    ) -> None:
        """Take a tag from the tablet servers that are in these racks now; needs Fluss 1.0.

        Raises:
            UnsupportedVersionError: The coordinator is older.
        """
        request = messages.RemoveServerTagByRackRequest(
            racks=_checked_racks(racks), server_tag=ServerTag.of(server_tag).code
        )
        await self._change(request)

    # --- rebalance ----------------------------------------------------------------------------

    async def rebalance(self, goals: Iterable[GoalType | str] = ()) -> str:
        """Begin to move replicas; returns the id of the rebalance.

        Args:
            goals: What it aims at, the most important first; without any, only servers with a tag
                are emptied.

        Raises:
            ServerError: Another one is running.
        """
        request = messages.RebalanceRequest(goals=[GoalType.of(each).code for each in goals])
        answer = await self._cluster.ask_coordinator(
            request, messages.RebalanceResponse, repeatable=False
        )
        return answer.rebalance_id

    async def list_rebalance_progress(
        self, rebalance_id: str | None = None
    ) -> RebalanceProgress | None:
        """How far a rebalance is; the newest one where none is named. None where there was none.

        Raises:
            ServerError: There is none of this id.
        """
        answer = await self._cluster.ask_coordinator(
            messages.ListRebalanceProgressRequest(rebalance_id=rebalance_id),
            messages.ListRebalanceProgressResponse,
        )
        return _rebalance_progress(answer) if answer.HasField("rebalance_id") else None

    async def cancel_rebalance(self, rebalance_id: str | None = None) -> None:
        """Stop a rebalance; what it has moved stays there. None for the one that is running.

        Raises:
            ServerError: There is none of this id.
        """
        await self._change(messages.CancelRebalanceRequest(rebalance_id=rebalance_id))

    # --- health -------------------------------------------------------------------------------

    async def get_cluster_health(self) -> ClusterHealth:
        """How many replicas are in sync, as the coordinator counts them; needs Fluss 1.0.

        Raises:
            UnsupportedVersionError: The coordinator is older.
        """
        answer = await self._cluster.ask_coordinator(
            messages.GetClusterHealthRequest(), messages.GetClusterHealthResponse
        )
        status = ClusterHealthStatus.from_code(answer.status)
        return ClusterHealth(
            num_replicas=answer.num_replicas,
            in_sync_replicas=answer.in_sync_replicas,
            num_leader_replicas=answer.num_leader_replicas,
            active_leader_replicas=answer.active_leader_replicas,
            status=status or ClusterHealthStatus.UNKNOWN,
        )


def _config_entry(config: messages.PbDescribeConfig) -> ConfigEntry:
    known = {str(each): each for each in ConfigSource}
    value = config.config_value if config.HasField("config_value") else None
    return ConfigEntry(
        config.config_key, value, known.get(config.config_source, config.config_source)
    )


def _checked_racks(racks: Iterable[str]) -> Sequence[str]:
    named = [racks] if isinstance(racks, str) else list(racks)
    if not named or not all(each.strip() for each in named):
        raise InvalidValueError("At least one rack is named, and no name is blank.")
    return named


def _rebalance_progress(answer: messages.ListRebalanceProgressResponse) -> RebalanceProgress:
    moved: dict[TableBucket, RebalanceResultForBucket] = {}
    for table in answer.table_progress:
        for progress in table.buckets_progress:
            plan = progress.rebalance_plan
            bucket = read_bucket(table.table_id, plan)
            moved[bucket] = RebalanceResultForBucket(
                bucket=bucket,
                original_leader=plan.original_leader if plan.HasField("original_leader") else None,
                new_leader=plan.new_leader if plan.HasField("new_leader") else None,
                original_replicas=tuple(plan.original_replicas),
                new_replicas=tuple(plan.new_replicas),
                status=RebalanceStatus.from_code(progress.rebalance_status),
            )
    return RebalanceProgress(
        rebalance_id=answer.rebalance_id,
        status=RebalanceStatus.from_code(answer.rebalance_status),
        progress_for_bucket_map=moved,
    )
