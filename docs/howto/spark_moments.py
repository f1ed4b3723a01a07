"""Fit FairPCA to a Spark data frame: each partition becomes bytes of moments, and these are merged."""

import os
import sys
from functools import reduce
from itertools import chain

import pyarrow
from pyspark.sql import SparkSession

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.moments import GroupMoments
from fairpca.moments.arrow import moments_from_batches


def moments_of(table, features, group, weight=None):
    def summarise(batches):
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is not None:  # partitions may be empty
            rows = chain([first], batches)
            moments = moments_from_batches(rows, group, columns=features, weight=weight, n_jobs=1)
            yield pyarrow.record_batch({"moments": [moments.to_bytes()]})

    chosen = table.select(*features, group, *([weight] if weight else []))
    if weight:  # rows of weight zero say nothing, and a partition may have no others
        chosen = chosen.where(f"`{weight}` <> 0 OR `{weight}` IS NULL")
    parts = chosen.mapInArrow(summarise, "moments binary").collect()
    return reduce(GroupMoments.merge, (GroupMoments.from_bytes(bytes(part.moments)) for part in parts))


os.environ["PYSPARK_PYTHON"] = sys.executable  # the interpreter of the workers, where fairpca and pyarrow are installed
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

credit = load_german_credit(as_frame=True)
people = credit.data.add_prefix("x ").assign(sex=credit.sensitive_features, weight=[1.0, 2.0] * 500)
features = [name for name in people.columns if name.startswith("x ")]
table = spark.createDataFrame(people).repartition(4)
pca = FairPCA(5).fit_moments(moments_of(table, features, "sex", "weight"))
print(pca.group_losses_, pca.group_counts_)
